"""From the actions of an agent to those of a space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np


def action_converter(space: gymnasium.Space
                     ) -> Callable[[np.ndarray], Any]:
  """Return the function from a batch of the agent's actions to the space's.

  Agents act in [-1, 1] wherever the space is bounded; what lies outside is
  clipped here and only here. Dimensions with one bound are clipped to it.
  Integers are counted from the space's `start`. Of a Dict or a Tuple, this is
  so for each of its parts.
  """
  if isinstance(space, gymnasium.spaces.Dict):
    parts = {key: action_converter(part) for key, part in space.items()}
    return lambda action: [dict(zip(parts, row, strict=True)) for row in zip(
        *(part(action[key]) for key, part in parts.items()), strict=True)]
  if isinstance(space, gymnasium.spaces.Tuple):
    items = [action_converter(part) for part in space.spaces]
    return lambda action: list(zip(*(
        item(action[str(index)]) for index, item in enumerate(items)),
        strict=True))
  if isinstance(space, gymnasium.spaces.Discrete):
    start = int(space.start)
    return lambda action: [int(x) + start for x in action]
  if isinstance(space, gymnasium.spaces.MultiDiscrete):
    return lambda action: (action + space.start).astype(space.dtype)
  if isinstance(space, gymnasium.spaces.MultiBinary):
    return lambda action: action.astype(space.dtype)
  assert isinstance(space, gymnasium.spaces.Box)
  low, high = space.low, space.high
  bounded = np.isfinite(low) & np.isfinite(high)
  clip_low = np.where(bounded, -1, low).astype(space.dtype)
  clip_high = np.where(bounded, 1, high).astype(space.dtype)
  # Halves first: the range of the widest float32 bounds is not a float32.
  with np.errstate(invalid="ignore"):
    scale = np.where(bounded, high / 2 - low / 2, 1).astype(space.dtype)
    shift = np.where(bounded, high / 2 + low / 2, 0).astype(space.dtype)
  dtype = space.dtype

  def convert(action):
    clipped = _clip(action.astype(dtype), clip_low, clip_high)
    # Rounding in scale and shift must not leave the space.
    return _clip(clipped * scale + shift, low, high)
  return convert


def _clip(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
  """`np.clip`, which takes longer to find out what it is to do."""
  return np.minimum(np.maximum(values, low), high)
