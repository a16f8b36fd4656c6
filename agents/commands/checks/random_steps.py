"""Takes random actions in an environment and records the results."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agents import spaces
from agents.environments.making import action_scaling


class Step(NamedTuple):
  """Values that a reset or a step of an environment returned."""

  place: str  # Such as "step 3" or "reset 1", counted from 1.
  observ: Any  # The returned object, which later steps may change.
  copy: np.ndarray  # Copy of the observation, made directly after the step.
  reward: Any = 0.0
  terminated: Any = False
  truncated: Any = False


def play(env: gymnasium.Env, seed: int, num_steps: int) -> list[Step]:
  """Takes random actions; returns the results of all resets and steps.

  Args:
    env: Environment, which is reset before the first step and after episodes.
    seed: Seed of the actions; the seeds of the episodes begin with it.
    num_steps: Number of steps.
  """
  space = env.observation_space
  convert = action_scaling.action_converter(env.action_space)
  steps, num_resets, terminated, truncated = [], 0, True, False
  for index, action in enumerate(actions(env.action_space, seed, (num_steps, 1))):
    if terminated or truncated:
      observ, _ = env.reset(seed=seed + index)
      num_resets += 1
      steps.append(Step(f"reset {num_resets}", observ, copied(space, observ)))
    observ, reward, terminated, truncated, _ = env.step(convert(action)[0])
    steps.append(
      Step(f"step {index + 1}", observ, copied(space, observ), reward, terminated, truncated)
    )
  return steps


def copied(space: gymnasium.Space, observ: Any) -> np.ndarray:
  """Returns a copy of an observation.

  Values of Dict and Tuple spaces become a structured array of shape [1].

  Args:
    space: Observation space.
    observ: Observation as the environment returned it.
  """
  if not spaces.composite(space):
    return np.array(observ)
  array = np.zeros(1, spaces.dtype(space)[0])
  spaces.writer(space, array)(0, observ)
  return array


def actions(space: gymnasium.Space, seed: int, shape: tuple[int, ...]) -> np.ndarray:
  """Returns random actions in the agent's format, of shape [*shape, ...].

  Floats are in [-1, 1], and integers begin at 0.

  Args:
    space: Action space.
    seed: Seed of the actions.
    shape: Shape before the dimensions of an action.
  """
  random = np.random.default_rng(seed)
  dtype, action_shape = spaces.dtype(space, is_action=True)
  result = np.zeros((*shape, *action_shape), dtype)
  for leaf, part in zip(spaces.leaves(space, is_action=True), spaces.columns(result), strict=True):
    if isinstance(leaf.space, gymnasium.spaces.Box):
      part[...] = random.uniform(-1, 1, part.shape)
    else:
      is_binary = isinstance(leaf.space, gymnasium.spaces.MultiBinary)
      part[...] = random.integers(
        2 if is_binary else getattr(leaf.space, "nvec", getattr(leaf.space, "n", 0)),
        size=part.shape,
      )
  return result
