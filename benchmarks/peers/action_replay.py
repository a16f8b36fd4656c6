"""Replays recorded actions in plain loops and in vector environments.

A running cheetah takes longer to simulate than one that lies on its back. All
systems must therefore simulate the same states: a trained policy acts once from
seeded resets, and every system replays these actions.
"""

import time

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.data import episode_data
from agents.environments.making import action_scaling, make


class PlainLoop:
  """Steps some of the recorded environments one after the other.

  Args:
    config: Configuration of the run.
    actions: Actions of the policy, of shape [T, B, ...], before they are scaled
      to the bounds of the space.
    first: Index of the first environment.
    stop: Index after the last environment.
  """

  def __init__(self, config: config_lib.Config, actions: np.ndarray, first: int, stop: int):
    self._run_seed = config.seed
    self._indices = range(first, stop)
    constructor = make.MakeEnv(config.env)
    self._envs = [constructor() for _ in self._indices]
    convert = action_scaling.action_converter(self._envs[0].action_space)
    self._actions = [convert(action[first:stop]) for action in actions]

  def replay(self) -> float:
    """Resets, replays all actions, and returns the steps per second."""
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
    self._envs[offset].reset(
      seed=episode_data.episode_seed(self._run_seed, self._indices[offset], episode)
    )


def replay_in_vector_env(
  env: gymnasium.vector.VectorEnv, actions: np.ndarray, run_seed: int
) -> float:
  """Replays actions in an environment with automatic resets.

  Only the first episodes have the seeds of the recorded ones.

  Args:
    env: Environment with B sub-environments.
    actions: Actions of the policy, of shape [T, B, ...], before they are scaled
      to the bounds of the space.
    run_seed: Seed that determines the seeds of the first episodes.

  Returns:
    Steps per second of all sub-environments together.
  """
  convert = action_scaling.action_converter(env.single_action_space)
  converted = [np.array(convert(action)) for action in actions]
  env.reset(seed=[episode_data.episode_seed(run_seed, index, 0) for index in range(env.num_envs)])
  start = time.perf_counter()
  for action in converted:
    env.step(action)
  return len(converted) * env.num_envs / (time.perf_counter() - start)
