"""Builds an unknown environment, and measures properties of its task."""

import contextlib
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import config as config_lib
from agents import spaces
from agents.environments.data import tensorflow_log
from agents.environments.making import make

_EPISODES = 3
_MAX_STEPS = 100  # Of each episode.


class Probe(NamedTuple):
  """Properties of a task."""

  max_length: int | None  # Time limit in steps of the agent; None if unknown.
  is_discrete: bool  # Whether all parts of an action are choices.
  has_constant_rewards: bool  # Whether rewards do not depend on the state.
  has_images: bool  # Whether observations contain images.
  has_vectors: bool  # Whether observations contain anything but images.


@make.exits_as_errors()
def probe(config: config_lib.Env) -> Probe:
  """Builds the environment of a task and plays a few steps.

  Args:
    config: Section `env` of the config.

  Raises:
    ConfigError: If the environment cannot be built.
  """
  make.check(config)
  with contextlib.closing(make.MakeEnv(config)()) as env:
    actions = spaces.leaves(env.action_space, is_action=True)
    are_images = [leaf.is_image for leaf in spaces.leaves(env.observation_space)]
    return Probe(
      make.time_limit(env, config),
      not any(isinstance(leaf.space, gymnasium.spaces.Box) for leaf in actions),
      _can_visit(config, env) and _has_constant_rewards(env),
      any(are_images),
      not all(are_images),
    )


def _can_visit(config: config_lib.Env, env: gymnasium.Env) -> bool:
  """Returns whether this process may play steps with continuous actions.

  Only workers render, because OpenGL can crash a process with TensorFlow. Other
  backends may build all environments again at a reset.
  """
  renders = config.renders or env.render_mode is not None
  is_box = isinstance(env.action_space, gymnasium.spaces.Box)
  return is_box and not renders and config.backend == "gymnasium"


def _has_constant_rewards(env: gymnasium.Env) -> bool:
  """Returns whether the same actions get the same rewards from every start.

  Such rewards tell nothing about the goal until the agent reaches it. A
  termination would tell something, too. Failures are left to training.
  """
  # Environments may use TensorFlow, which would print log messages.
  with tensorflow_log.hidden(), contextlib.suppress(Exception, SystemExit):
    episodes = [_play(env, seed) for seed in range(_EPISODES)]
    (first_observ, first_rewards), *others = episodes
    return all(
      rewards is not None and rewards == first_rewards and observ != first_observ
      for observ, rewards in others
    )
  return False


def _play(env: gymnasium.Env, seed: int) -> tuple[bytes, list[float] | None]:
  """Plays an episode with random actions that do not depend on the seed.

  Returns:
    The first observation as bytes; the rewards, or None after a termination.
  """
  random = np.random.default_rng(0)
  space = env.action_space
  assert isinstance(space, gymnasium.spaces.Box)
  low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
  first, _ = env.reset(seed=seed)
  observ = b"".join(
    np.asarray(each).tobytes() for each in spaces.values(env.observation_space, first)
  )
  rewards = []
  for _ in range(_MAX_STEPS):
    _, reward, terminated, truncated, _ = env.step(random.uniform(low, high).astype(space.dtype))
    if terminated:
      return observ, None
    rewards.append(float(reward))
    if truncated:
      break
  return observ, rewards
