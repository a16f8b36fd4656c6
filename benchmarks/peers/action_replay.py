"""Replays recorded actions in plain loops and in vector environments.

A running cheetah takes longer to simulate than one that lies on its back. So
that all candidates step the same physics, a trained policy acts once from
seeded resets, and every candidate replays its actions.
"""

from __future__ import annotations

import pickle
import sys
import time
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.data import episodes
from agents.environments.making import action_scaling
from agents.environments.making import make
from benchmarks.common import measuring_process


class RecordedActions(NamedTuple):
  """Actions of T steps of B environments."""

  config: config_lib.Env
  run_seed: int  # The seeds of the episodes derive from it.
  action: np.ndarray  # [T, B, ...], as the policy returned them.


class PlainLoop:
  """Steps some of the recorded environments one after the other.

  Args:
    recorded: Actions to replay.
    first: Index of the first environment.
    stop: Index after the last environment.
  """

  def __init__(self, recorded: RecordedActions, first: int, stop: int):
    self._run_seed = recorded.run_seed
    self._indices = range(first, stop)
    constructor = make.MakeEnv(recorded.config)
    self._envs = [constructor() for _ in self._indices]
    convert = action_scaling.action_converter(self._envs[0].action_space)
    self._actions = [convert(action[first:stop]) for action in recorded.action]

  def replay(self) -> float:
    """Replay all actions from the first resets; return steps per second."""
    episode = [0] * len(self._envs)
    for offset in range(len(self._envs)):
      self._reset(offset, 0)
    start = time.perf_counter()
    for actions in self._actions:
      for offset, env in enumerate(self._envs):
        _, _, terminated, truncated, _ = env.step(actions[offset])
        if terminated or truncated:
          episode[offset] += 1
          self._reset(offset, episode[offset])
    seconds = time.perf_counter() - start
    return len(self._actions) * len(self._envs) / seconds

  def _reset(self, offset: int, episode: int):
    self._envs[offset].reset(seed=episodes.episode_seed(
        self._run_seed, self._indices[offset], episode))


def replay_in_vector_env(env: gymnasium.vector.VectorEnv,
                         recorded: RecordedActions) -> float:
  """Replay actions in an environment with automatic resets.

  The first episodes begin with the recorded seeds, later ones with others.

  Args:
    env: Environment with B sub-environments.
    recorded: Actions to replay.
  Returns:
    Steps per second of all sub-environments together.
  """
  convert = action_scaling.action_converter(env.single_action_space)
  actions = [np.array(convert(action)) for action in recorded.action]
  env.reset(seed=[episodes.episode_seed(recorded.run_seed, index, 0)
                  for index in range(env.num_envs)])
  start = time.perf_counter()
  for action in actions:
    env.step(action)
  return len(actions) * env.num_envs / (time.perf_counter() - start)


def save(recorded: RecordedActions, path: str):
  """Write recorded actions to a file."""
  with open(path, "wb") as file:
    pickle.dump(recorded._asdict(), file)


def load(path: str) -> RecordedActions:
  """Read a file that this benchmark wrote; pickles of others are unsafe."""
  with open(path, "rb") as file:
    return RecordedActions(**pickle.load(file))


if __name__ == "__main__":
  measuring_process.serve(
      PlainLoop(load(sys.argv[1]), *map(int, sys.argv[2:])).replay)
