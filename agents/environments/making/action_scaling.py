"""Conversion of the agent's actions to actions of an environment's space."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from agents import spaces


def action_converter(space: gymnasium.Space) -> Callable[[np.ndarray], Any]:
  """Returns a function that converts a batch of the agent's actions.

  Bounded dimensions of a Box are clipped to [-1, 1] and scaled to the bounds.
  Dimensions with one bound are clipped to this bound. The agent's own array is
  not changed. Integers are shifted by the space's `start`. Parts of a Dict or
  Tuple are converted separately.

  Args:
    space: Action space of the environments.

  Returns:
    Function that maps an array of actions, [N, ...], to N actions of the space.
  """
  if isinstance(space, gymnasium.spaces.Dict):
    parts = {key: action_converter(part) for key, part in space.items()}
    return lambda action: [
      dict(zip(parts, row, strict=True))
      for row in zip(*(part(action[key]) for key, part in parts.items()), strict=True)
    ]
  if isinstance(space, gymnasium.spaces.Tuple):
    items = [action_converter(part) for part in space.spaces]
    return lambda action: list(
      zip(*(item(action[str(index)]) for index, item in enumerate(items)), strict=True)
    )
  if isinstance(space, gymnasium.spaces.Discrete):
    start = int(space.start)
    return lambda action: [int(x) + start for x in action]
  if not isinstance(space, gymnasium.spaces.Box):  # Arrays of integers.
    starts = getattr(space, "start", 0)
    return lambda action: (action + starts).astype(space.dtype)
  dtype, low, high = space.dtype, space.low, space.high
  bounded = np.isfinite(low) & np.isfinite(high)
  clip_low = np.where(bounded, -1, low).astype(dtype)
  clip_high = np.where(bounded, 1, high).astype(dtype)
  # Halves the bounds first, because `high - low` can overflow in float32.
  with np.errstate(invalid="ignore"):
    scale = np.where(bounded, high / 2 - low / 2, 1).astype(dtype)
    shift = np.where(bounded, high / 2 + low / 2, 0).astype(dtype)

  def convert(action: np.ndarray) -> np.ndarray:
    clipped = _clip(action.astype(dtype), clip_low, clip_high)
    # Clips again, because rounding errors may exceed the bounds.
    return _clip(clipped * scale + shift, low, high)

  return convert


def _clip(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
  """Clips values with less overhead for small arrays than `np.clip`."""
  return np.minimum(np.maximum(values, low), high)


def sample(space: gymnasium.Space, num_actions: int, rng: np.random.Generator) -> np.ndarray:
  """Returns random actions of the agent: floats in [-1, 1], and all choices.

  Args:
    space: Action space of the environment.
    num_actions: Number of actions, N.
    rng: Generator of the random numbers.

  Returns:
    Array of shape [N, ...] and the type of `spaces.dtype`.
  """
  dtype, shape = spaces.dtype(space, is_action=True)
  action = np.zeros((num_actions, *shape), dtype)
  for leaf, column in zip(spaces.leaves(space, True), spaces.columns(action), strict=True):
    if leaf.dtype == np.float32:
      column[...] = rng.uniform(-1, 1, column.shape)
    else:
      is_binary = isinstance(leaf.space, gymnasium.spaces.MultiBinary)
      sizes: Any = 2 if is_binary else getattr(leaf.space, "nvec", getattr(leaf.space, "n", 0))
      column[...] = rng.integers(sizes, size=column.shape)
  return action
