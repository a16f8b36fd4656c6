"""Where each field of a batch lies in one buffer of bytes.

The same layout serves shared memory, NumPy views and the graph, so a batched
step crosses process and graph boundaries as a single array of bytes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import gymnasium
import numpy as np


class Field(NamedTuple):
  """A named array with the batch dimension first."""

  name: str
  dtype: np.dtype
  shape: tuple[int, ...]

  @property
  def num_bytes(self) -> int:
    return self.dtype.itemsize * math.prod(self.shape)


class Layout:
  """Fields one after the other, each aligned to a cache line."""

  ALIGNMENT = 64

  def __init__(self, fields: list[Field]):
    self.fields = fields
    self.offsets: list[int] = []
    self.num_bytes = 0
    for field in fields:
      self.offsets.append(self.num_bytes)
      lines = -(-field.num_bytes // self.ALIGNMENT)
      self.num_bytes += lines * self.ALIGNMENT

  def views(self, buffer: np.ndarray) -> dict[str, np.ndarray]:
    """Return an array on the buffer's own memory for every field.

    Args:
      buffer: Array of shape [num_bytes] and type uint8.
    """
    arrays = {}
    for field, offset in zip(self.fields, self.offsets, strict=True):
      raw = buffer[offset:offset + field.num_bytes]
      arrays[field.name] = raw.view(field.dtype).reshape(field.shape)
    return arrays


def action_layout(batch: int, space: gymnasium.Space) -> Layout:
  """Layout of what the agent sends; actions are float32 or int64."""
  if isinstance(space, gymnasium.spaces.Box):
    field = Field("action", np.dtype(np.float32), (batch, *space.shape))
  else:
    field = Field("action", np.dtype(np.int64), (batch,))
  return Layout([field, Field("active", np.dtype(np.bool_), (batch,))])


def step_layout(batch: int, space: gymnasium.Space) -> Layout:
  """Layout of what the environments answer at every step."""
  flag = np.dtype(np.bool_)
  return Layout([
      _observations("observ", batch, space),
      Field("reward", np.dtype(np.float32), (batch,)),
      Field("terminated", flag, (batch,)),
      Field("truncated", flag, (batch,)),
      Field("valid", flag, (batch,)),
  ])


def final_layout(batch: int, space: gymnasium.Space) -> Layout:
  """Layout of what is left behind beside the answers.

  That is the last observations of episodes, which are seldom needed, and for
  each environment its share of the seconds of its worker's last step.
  """
  return Layout([
      _observations("final_observ", batch, space),
      Field("seconds", np.dtype(np.float64), (batch,)),
  ])


def check_spaces(observation: gymnasium.Space, action: gymnasium.Space):
  """Raise TypeError for spaces that no field can hold."""
  spaces = gymnasium.spaces
  if not isinstance(observation, (spaces.Box, spaces.Discrete)):
    raise TypeError(
        f"Observation space {observation} is not supported; Box and Discrete "
        "are. gymnasium.wrappers.FlattenObservation makes a Box of many.")
  if isinstance(action, spaces.Box):
    if not np.issubdtype(action.dtype, np.floating):
      raise TypeError(f"Action space {action} is not supported: a Box of "
                      "actions must have a floating-point type.")
  elif not isinstance(action, spaces.Discrete):
    raise TypeError(f"Action space {action} is not supported; Box and "
                    "Discrete are.")


def batch_views(
    buffer: np.ndarray, batch: int, observation: gymnasium.Space,
    action: gymnasium.Space) -> dict[str, np.ndarray]:
  """Return all fields of a batch: actions, answers, last observations."""
  views = {}
  for layout in (action_layout(batch, action), step_layout(batch, observation),
                 final_layout(batch, observation)):
    views.update(layout.views(buffer))
    buffer = buffer[layout.num_bytes:]
  return views


def _observations(name: str, batch: int, space: gymnasium.Space) -> Field:
  if isinstance(space, gymnasium.spaces.Box):
    dtype = np.uint8 if space.dtype == np.uint8 else np.float32
    return Field(name, np.dtype(dtype), (batch, *space.shape))
  return Field(name, np.dtype(np.int64), (batch,))
