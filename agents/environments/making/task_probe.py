"""Learns about an unknown task from a short visit to its environment."""

import contextlib
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.making import make

_EPISODES = 3
_STEPS = 100  # Of each episode.


class Probe(NamedTuple):
  """Properties of a task."""

  max_length: int | None  # Time limit in steps of the agent; None if unknown.
  is_discrete: bool  # Whether all actions are choices.
  has_constant_rewards: bool  # See `_has_constant_rewards`.


def probe(config: config_lib.Env) -> Probe:
  """Builds the environment of a task and plays a few steps.

  Args:
    config: Section `env` of the config.

  Raises:
    ConfigError: If the environment cannot be built.
  """
  make.check(config)
  try:
    max_length = make.max_length(config)
  except config_lib.ConfigError:  # No time limit is known.
    max_length = None
  with contextlib.closing(make.MakeEnv(config)()) as env:
    space = env.action_space
    return Probe(
      max_length,
      isinstance(
        space,
        (gymnasium.spaces.Discrete, gymnasium.spaces.MultiDiscrete, gymnasium.spaces.MultiBinary),
      ),
      _visit(env),
    )


def _has_constant_rewards(env: gymnasium.Env, space: gymnasium.spaces.Box) -> bool:
  """Returns whether an agent that does nothing always gets the same reward.

  Such a task tells nothing about its goal until the agent reaches it. A
  termination would tell something, too. The visit ends at the first difference.
  """
  bounded = np.isfinite(space.low) & np.isfinite(space.high)
  nothing = np.where(bounded, space.low / 2 + space.high / 2, 0).astype(space.dtype)
  rewards = set()
  for seed in range(_EPISODES):
    env.reset(seed=seed)
    for _ in range(_STEPS):
      _, reward, terminated, truncated, _ = env.step(nothing)
      rewards.add(float(reward))
      if terminated or len(rewards) > 1:
        return False
      if truncated:
        break
  return True


def _visit(env: gymnasium.Env) -> bool:
  """See `_has_constant_rewards`; returns False if a step fails."""
  if not isinstance(env.action_space, gymnasium.spaces.Box):
    return False
  try:
    return _has_constant_rewards(env, env.action_space)
  except Exception:  # Training reports failures, and can replace environments.
    return False
