"""Ids that were registered here are known in workers, too."""

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.making import gym_registry
from tests import toy


@pytest.fixture
def local():
  """Register a class that no other process can import, and what can't be sent.
  """
  class Local(toy.Counter):
    pass
  gymnasium.register("TestRegistered-v0", Local, max_episode_steps=2)
  unsendable = (number for number in range(3))
  gymnasium.register("TestUnsendable-v0", Local, kwargs={"x": unsendable})
  yield "TestRegistered-v0"
  for name in ("TestRegistered-v0", "TestUnsendable-v0"):
    del gymnasium.registry[name]


def test_workers_make_what_is_registered_here(local, mode):
  with batch_env.BatchEnv([lambda: gymnasium.make(local)] * 2, mode) as batch:
    batch.reset()
    for _ in range(2):
      step = batch.step(np.zeros((2, 1)))
  assert step.truncated.tolist() == [True, True]


def test_what_is_known_stays_as_it_is(local):
  packed = gym_registry.packed()
  assert local in packed and "CartPole-v1" not in packed
  before = gymnasium.registry[local]
  gym_registry.add(packed)
  assert gymnasium.registry[local] is before
  del gymnasium.registry[local]
  gym_registry.add({**packed, "Nonsense-v0": b"nonsense"})
  assert gymnasium.registry[local].max_episode_steps == 2
  assert "Nonsense-v0" not in gymnasium.registry
