"""Layout of the arrays of a batch in one buffer of bytes.

Shared memory, NumPy views and the graph use the same layout, so a batched step
crosses process and graph boundaries as a single array of bytes.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agents import spaces

_ALIGNMENT = 64  # Bytes of a cache line.

ArraySpec = tuple[str, Any, tuple[int, ...]]  # Name, type and shape.


class Field(NamedTuple):
  """A named array in a buffer, with the batch dimension first."""

  name: str
  dtype: np.dtype
  shape: tuple[int, ...]
  byte_slice: slice  # Position of the array's bytes in the buffer.
  # In the graph, arrays of structured types become vectors of bytes, because
  # TensorFlow has no structured types.
  graph_dtype: np.dtype
  graph_shape: tuple[int, ...]


class Layout:
  """Consecutive arrays in one buffer, each aligned to a cache line.

  Args:
    specs: Name, type and shape of each array.
  """

  def __init__(self, specs: Sequence[ArraySpec]) -> None:
    self.fields: list[Field] = []
    self.num_bytes = 0
    for name, array_type, shape in specs:
      dtype: np.dtype = np.dtype(array_type)
      graph_dtype, graph_shape = dtype, shape
      if dtype.names:
        graph_dtype, graph_shape = np.dtype(np.uint8), (*shape, dtype.itemsize)
      end = self.num_bytes + dtype.itemsize * math.prod(shape)
      self.fields.append(
        Field(name, dtype, shape, slice(self.num_bytes, end), graph_dtype, graph_shape)
      )
      self.num_bytes = -(-end // _ALIGNMENT) * _ALIGNMENT

  def views(self, buffer: np.ndarray) -> dict[str, np.ndarray]:
    """Returns one array per field, by name, that shares the buffer's memory.

    Args:
      buffer: Array of shape [num_bytes] and type uint8.
    """
    return {
      field.name: buffer[field.byte_slice].view(field.dtype).reshape(field.shape)
      for field in self.fields
    }


def action_layout(batch: int, space: gymnasium.Space) -> Layout:
  """Returns the layout of a step's input: actions and active environments.

  Args:
    batch: Number of environments.
    space: Action space; actions are float32 or int64.
  """
  return Layout([_batch_of("action", batch, space, is_action=True), ("active", np.bool_, (batch,))])


def step_layout(batch: int, space: gymnasium.Space) -> Layout:
  """Returns the layout of a step's result.

  Args:
    batch: Number of environments.
    space: Observation space.
  """
  return Layout(
    [
      _batch_of("observ", batch, space),
      ("reward", np.float32, (batch,)),
      ("terminated", np.bool_, (batch,)),
      ("truncated", np.bool_, (batch,)),
      ("valid", np.bool_, (batch,)),
    ]
  )


def batch_layout(batch: int, observation: gymnasium.Space, action: gymnasium.Space) -> Layout:
  """Returns the layout of all arrays that a batch reads and writes.

  The fields of `action_layout` and `step_layout` come first. The field
  "final_observ" contains the last observation of each ended episode. The field
  "seconds" contains, for each environment, the duration of the latest step of
  its worker, divided by the number of environments of the worker.

  Args:
    batch: Number of environments.
    observation: Observation space.
    action: Action space.
  """
  first = (*action_layout(batch, action).fields, *step_layout(batch, observation).fields)
  return Layout(
    [
      *(field[:3] for field in first),
      _batch_of("final_observ", batch, observation),
      ("seconds", np.float64, (batch,)),
    ]
  )


def _batch_of(name: str, batch: int, space: gymnasium.Space, is_action: bool = False) -> ArraySpec:
  dtype, shape = spaces.dtype(space, is_action)
  return name, dtype, (batch, *shape)
