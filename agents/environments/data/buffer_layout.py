"""Where each field of a batch lies in one buffer of bytes.

The same layout serves shared memory, NumPy views and the graph, so a batched
step crosses process and graph boundaries as a single array of bytes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import spaces


class Field(NamedTuple):
  """A named array with the batch dimension first."""

  name: str
  dtype: np.dtype
  shape: tuple[int, ...]

  @property
  def num_bytes(self) -> int:
    return self.dtype.itemsize * math.prod(self.shape)

  @property
  def in_graph(self) -> tuple[np.dtype, tuple[int, ...]]:
    """Type and shape of the tensor that stands for it."""
    if self.dtype.names:
      return np.dtype(np.uint8), (*self.shape, self.dtype.itemsize)
    return self.dtype, self.shape


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
  return Layout([_field("action", batch, space, acting=True),
                 Field("active", np.dtype(np.bool_), (batch,))])


def step_layout(batch: int, space: gymnasium.Space) -> Layout:
  """Layout of what the environments answer at every step."""
  flag = np.dtype(np.bool_)
  return Layout([
      _field("observ", batch, space),
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
      _field("final_observ", batch, space),
      Field("seconds", np.dtype(np.float64), (batch,)),
  ])


def batch_bytes(batch: int, observation: gymnasium.Space,
                action: gymnasium.Space) -> int:
  """Return how large a buffer `batch_views` needs."""
  return sum(layout.num_bytes for layout in _layouts(
      batch, observation, action))


def batch_views(
    buffer: np.ndarray, batch: int, observation: gymnasium.Space,
    action: gymnasium.Space) -> dict[str, np.ndarray]:
  """Return all fields of a batch: actions, answers, last observations."""
  views = {}
  for layout in _layouts(batch, observation, action):
    views.update(layout.views(buffer))
    buffer = buffer[layout.num_bytes:]
  return views


def _layouts(batch: int, observation: gymnasium.Space, action: gymnasium.Space
             ) -> tuple[Layout, ...]:
  return (action_layout(batch, action), step_layout(batch, observation),
          final_layout(batch, observation))


def _field(name: str, batch: int, space: gymnasium.Space, acting: bool = False
           ) -> Field:
  kind, shape = spaces.dtype(space, acting)
  return Field(name, kind, (batch, *shape))
