"""Plays batches of environments and compares what came out, bit for bit."""

from __future__ import annotations

import collections
import functools
import pathlib

import gymnasium
import numpy as np

from agents import config
from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.making import make
from tests import toy


def make_env(env_id: str, **options) -> make.MakeEnv:
  return make.MakeEnv(config.Env(env_id, **options))


# Cheetahs don't fall; the limit makes their episodes end, too.
SIMULATED = [make_env(env_id, max_length=60) for env_id in (
    "Hopper-v5", "HalfCheetah-v5", "Ant-v5", "Humanoid-v5")]
# Batches of five; in each, episodes end within 60 steps.
BATCHES = {
    "toy": [functools.partial(toy.Counter, length, length % 2 == 0)
            for length in (1, 2, 3, 4, 50)],
    "cartpole": [make_env("CartPole-v1")] * 5,
    "frozen_lake": [make_env("FrozenLake-v1")] * 5,
    "hopper": [make_env("Hopper-v5")] * 5,
    "cheetah": [make_env("HalfCheetah-v5", max_length=25)] * 5,
    "uneven": [make_env("tests.toy:Uneven", kwargs={"most": 9})] * 5,
    "wrapped": [make_env("Hopper-v5", max_length=9, random_start=4,
                         action_repeat=2, frame_delta=True)] * 5,
}


def draw_actions(space: gymnasium.Space, size: int, steps: int, seed: int = 1
                 ) -> np.ndarray:
  """Return actions of shape [steps, size, ...], many outside of the bounds."""
  random = np.random.default_rng(seed)
  if isinstance(space, gymnasium.spaces.Discrete):
    return random.integers(space.n, size=(steps, size))
  shape = (steps, size, *space.shape)
  return random.normal(0, 1.5, shape).astype(np.float32)


def roll(batch: batch_env.BatchEnv, actions: np.ndarray
         ) -> list[tuple[batch_env.Step, list[episodes.Episode]]]:
  """Step through the actions; return what came of each, and what it ended."""
  steps = []
  for action in actions:
    seen = len(batch.finished)
    step = batch.step(action)
    steps.append((step, batch.finished[seen:]))
  return steps


def roll_with_pauses(batch: batch_env.BatchEnv, actions: np.ndarray,
                     chance: float = 0.6
                     ) -> list[tuple[batch_env.Step, list[episodes.Episode]]]:
  """Do the same, while environments wait with a chance wherever they can."""
  random = np.random.default_rng(0)
  begun, steps = np.zeros(len(batch), bool), []
  for action in actions:
    active = begun | (random.random(len(batch)) >= chance)
    seen = len(batch.finished)
    step = batch.step(action, active)
    assert (step.valid == active).all()
    begun = active & ~(step.terminated | step.truncated)
    steps.append((step, batch.finished[seen:]))
  return steps


def play(constructors, workers, steps: int = 60, seed: int = 0,
         groups: int = 1):
  """Return the first observations of a new batch, and what follows."""
  with batch_env.BatchEnv(constructors, workers, seed, groups) as batch:
    first = batch.reset()
    return first, roll(
        batch, draw_actions(batch.action_space, len(batch), steps))


def assert_same_bits(one, other):
  """Compare what two calls of `roll` returned."""
  assert len(one) == len(other)
  for (one_step, one_ended), (other_step, other_ended) in zip(one, other):
    for name in one_step._fields:
      field, same = getattr(one_step, name), getattr(other_step, name)
      assert field.dtype == same.dtype and field.shape == same.shape, name
      assert field.tobytes() == same.tobytes(), name
    np.testing.assert_equal(one_ended, other_ended)


def not_closed(diary: pathlib.Path) -> dict[str, int]:
  """Return how many environments of each name an `odd.Diary` left open."""
  lines = collections.Counter(diary.read_text().splitlines())
  names = {line.split()[1] for line in lines}
  amounts = {name: lines[f"built {name}"] - lines[f"closed {name}"]
             for name in names}
  return {name: amount for name, amount in amounts.items() if amount}
