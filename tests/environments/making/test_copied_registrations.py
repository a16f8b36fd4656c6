"""Workers can build environments that only the trainer's process registered."""

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.making import copied_registrations
from tests import toy


@pytest.fixture
def local_id():
  """Registers a class that workers can't import, and returns its id.

  Also registers an id that can't be pickled.
  """

  class Local(toy.Counter):
    pass

  gymnasium.register("TestRegistered-v0", Local, max_episode_steps=2)
  generator = (number for number in range(3))
  gymnasium.register("TestUnpicklable-v0", Local, kwargs={"x": generator})
  yield "TestRegistered-v0"
  for name in ("TestRegistered-v0", "TestUnpicklable-v0"):
    del gymnasium.registry[name]


def test_workers_build_environments_that_the_trainer_registered(local_id, mode):
  constructors = [lambda: gymnasium.make(local_id)] * 2
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    for _ in range(2):
      step = batch.step(np.zeros((2, 1)))
  assert step.truncated.tolist() == [True, True]


def test_add_registers_only_missing_ids(local_id):
  packed = copied_registrations.packed()
  assert local_id in packed and "CartPole-v1" not in packed
  before = gymnasium.registry[local_id]
  copied_registrations.add(packed)
  assert gymnasium.registry[local_id] is before
  del gymnasium.registry[local_id]
  copied_registrations.add({**packed, "Invalid-v0": b"invalid"})
  assert gymnasium.registry[local_id].max_episode_steps == 2
  assert "Invalid-v0" not in gymnasium.registry
