"""Plays batches of environments and compares the results bit by bit."""

import collections
import functools
import pathlib

import gymnasium
import numpy as np

from agents import config
from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.environments.making import make
from tests import toy


def make_env(env_id: str, **options) -> make.MakeEnv:
  return make.MakeEnv(config.Env(env_id, **options))


# HalfCheetah never terminates; the limit ends its episodes within the tests.
SIMULATED = [
  make_env(env_id, max_length=60)
  for env_id in ("Hopper-v5", "HalfCheetah-v5", "Ant-v5", "Humanoid-v5")
]
# Batches of five environments; some episodes of each batch end within 60 steps.
BATCHES = {
  "toy": [functools.partial(toy.Counter, length, length % 2 == 0) for length in (1, 2, 3, 4, 50)],
  "cartpole": [make_env("CartPole-v1")] * 5,
  "frozen_lake": [make_env("FrozenLake-v1")] * 5,
  "hopper": [make_env("Hopper-v5")] * 5,
  "cheetah": [make_env("HalfCheetah-v5", max_length=25)] * 5,
  "uneven": [make_env("tests.toy:Uneven", kwargs={"max_length": 9})] * 5,
  "wrapped": [
    make_env("Hopper-v5", max_length=9, random_start=4, action_repeat=2, frame_delta=True)
  ]
  * 5,
}


def draw_actions(space: gymnasium.Space, size: int, num_steps: int, seed: int = 1) -> np.ndarray:
  """Returns random actions; many actions of Box spaces exceed [-1, 1].

  Args:
    space: Action space of one environment.
    size: Number of environments.
    num_steps: Number of batched steps.
    seed: Seed of the random actions.

  Returns:
    Array of shape [num_steps, size, ...].
  """
  random = np.random.default_rng(seed)
  if isinstance(space, gymnasium.spaces.Discrete):
    return random.integers(space.n, size=(num_steps, size))
  shape = (num_steps, size, *space.shape)
  return random.normal(0, 1.5, shape).astype(np.float32)


def roll(
  batch: batch_env.BatchEnv, actions: np.ndarray
) -> list[tuple[batch_env.StepResult, list[episode_data.Episode]]]:
  """Steps a batch with the given actions.

  Args:
    batch: The environments.
    actions: Actions of shape [num_steps, size, ...].

  Returns:
    The result of each step and the episodes that finished in the step.
  """
  batch.take_finished()
  return [(batch.step(action), batch.take_finished()) for action in actions]


def roll_with_pauses(
  batch: batch_env.BatchEnv, actions: np.ndarray, probability: float = 0.6
) -> list[tuple[batch_env.StepResult, list[episode_data.Episode]]]:
  """Like `roll`, but environments sometimes wait before an episode.

  Args:
    batch: The environments.
    actions: Actions of shape [num_steps, size, ...].
    probability: Probability that an environment between two episodes waits
      for one step.

  Returns:
    The result of each step and the episodes that finished in the step.
  """
  batch.take_finished()
  random = np.random.default_rng(0)
  in_episode, steps = np.zeros(len(batch), bool), []
  for action in actions:
    active = in_episode | (random.random(len(batch)) >= probability)
    step = batch.step(action, active)
    assert (step.valid == active).all()
    in_episode = active & ~(step.terminated | step.truncated)
    steps.append((step, batch.take_finished()))
  return steps


def play(constructors, workers, num_steps: int = 60, seed: int = 0):
  """Builds a batch, resets it and rolls it with random actions.

  Args:
    constructors: Constructors of the environments.
    workers: None or a pool of workers.
    num_steps: Number of steps.
    seed: Seed of the batch; the actions do not depend on it.

  Returns:
    Observations of the reset, and the result of `roll`.
  """
  with batch_env.BatchEnv(constructors, workers, seed) as batch:
    first = batch.reset()
    return first, roll(batch, draw_actions(batch.action_space, len(batch), num_steps))


def assert_same_bits(steps, other_steps):
  """Compares two results of `roll`: bit-equal steps, equal episodes."""
  assert len(steps) == len(other_steps)
  for (step, finished), (other_step, other_finished) in zip(steps, other_steps):
    for name in step._fields:
      field, other = getattr(step, name), getattr(other_step, name)
      assert field.dtype == other.dtype and field.shape == other.shape, name
      assert field.tobytes() == other.tobytes(), name
    np.testing.assert_equal(finished, other_finished)


def count_open(path: pathlib.Path) -> dict[str, int]:
  """Counts the `faulty_envs.LogsLifetime` environments that are open.

  Args:
    path: File to which the environments append lines.

  Returns:
    Number of open environments by name, without names that have none.
  """
  lines = collections.Counter(path.read_text().splitlines() if path.exists() else [])
  names = {line.split()[1] for line in lines}
  counts = {name: lines[f"built {name}"] - lines[f"closed {name}"] for name in names}
  return {name: count for name, count in counts.items() if count}
