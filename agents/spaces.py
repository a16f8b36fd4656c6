"""How values of Gymnasium's spaces are kept in arrays.

A value of a simple space (Box, Discrete, MultiDiscrete, MultiBinary) is an
array of its own type. Values of Dict and Tuple, however nested, are one element
of a structured type with a field for each part. In the graph, which has no such
types, that element is a vector of bytes; `leaves` says what lies where in it.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces as gym

_LEAST_SIDE = 36  # Of an image; the usual convolutions need as much.


class Leaf(NamedTuple):
  """A simple space, alone or somewhere within a composite one."""

  path: tuple[str, ...]  # Of keys, and of indices as text; () if it is alone.
  space: gymnasium.Space
  dtype: np.dtype
  shape: tuple[int, ...]
  offset: int  # Bytes of an element in front of it.

  @property
  def num_bytes(self) -> int:
    return self.dtype.itemsize * int(np.prod(self.shape))

  @property
  def is_image(self) -> bool:
    """Whether observations of it are for convolutions."""
    return self.dtype == np.uint8 and len(self.shape) in (2, 3) and (
        sorted(self.shape)[-2] >= _LEAST_SIDE)

  def __str__(self) -> str:
    return "".join(f"[{key!r}]" for key in self.path)


def composite(space: gymnasium.Space) -> bool:
  """Whether values are vectors of bytes in the graph."""
  return isinstance(space, (gym.Dict, gym.Tuple))


def dtype(space: gymnasium.Space, acting: bool = False
          ) -> tuple[np.dtype, tuple[int, ...]]:
  """Return type and shape of the array that holds one value.

  Args:
    space: Of observations or actions.
    acting: Whether of actions, which are float32 or int64: those that agents
      choose, in [-1, 1] or from 0.
  Raises:
    TypeError: If no array can hold its values.
  """
  if composite(space):
    parts = [(key, *dtype(part, acting)) for key, part in _parts(space)]
    if not parts:
      raise TypeError(f"Space {space} is not supported: it holds nothing.")
    return np.dtype(parts), ()
  shape = space.shape or ()
  if isinstance(space, gym.Box):
    assert space.dtype is not None
    floats = np.issubdtype(space.dtype, np.floating)
    if acting and 0 in shape:
      raise TypeError(f"Action space {space} is not supported: it holds "
                      "nothing.")
    if acting and not floats:
      raise TypeError(f"Action space {space} is not supported: a Box of "
                      "actions must have a floating-point type.")
    return np.dtype(np.float32) if floats else np.dtype(space.dtype), shape
  if isinstance(space, gym.MultiBinary):
    return np.dtype(np.int64 if acting else np.int8), shape
  if isinstance(space, (gym.Discrete, gym.MultiDiscrete)):
    return np.dtype(np.int64), shape
  raise TypeError(
      f"{'Action' if acting else 'Observation'} space {space} is not "
      "supported; Box, Discrete, MultiDiscrete, MultiBinary, and Dict and "
      "Tuple of these are.")


def check(observation: gymnasium.Space, action: gymnasium.Space):
  """Raise TypeError for spaces whose values no array can hold."""
  dtype(observation)
  dtype(action, acting=True)


def leaves(space: gymnasium.Space, acting: bool = False) -> list[Leaf]:
  """Return all simple spaces in the order in which they are kept."""
  return list(_leaves(space, acting, (), 0))


def as_bytes(array: np.ndarray) -> np.ndarray:
  """Return what the graph takes: elements with fields as vectors of bytes."""
  if array.dtype.names is None:
    return array
  return np.ascontiguousarray(array)[..., None].view(np.uint8)


def from_bytes(array: np.ndarray, kind: np.dtype) -> np.ndarray:
  """Undo `as_bytes`."""
  if kind.names is None or array.dtype == kind:
    return converted(array, kind)
  return np.ascontiguousarray(array).view(kind)[..., 0]


def converted(values: Any, kind: np.dtype) -> np.ndarray:
  """Return an array of another type.

  Raises:
    ValueError: If that would cut off what is behind the point.
  """
  array = np.asarray(values)
  if not np.can_cast(array.dtype, kind, "same_kind"):
    raise ValueError(f"Actions must be of {kind}, or can't be of {array.dtype} "
                     "without a loss: round them first.")
  return array.astype(kind, copy=False)


def columns(array: np.ndarray) -> list[np.ndarray]:
  """Return an array for each leaf, on the memory of one for all."""
  if array.dtype.names is None:
    return [array]
  return [column for name in array.dtype.names for column in columns(
      array[name])]


def values(space: gymnasium.Space, value: Any) -> list[Any]:
  """Return the part of a value that each leaf is to hold.

  Raises:
    ValueError: If a part is missing, or has another shape than its space.
  """
  return _values(space, leaves(space), value)


def writer(space: gymnasium.Space, array: np.ndarray
           ) -> Callable[[int, Any], None]:
  """Return the function that puts a value into a row of an array.

  Args:
    space: That the values are of.
    array: Of shape [N, ...], with the type and shape of `dtype`.
  Returns:
    A function that raises ValueError where integers would not stay the same,
    or the shape is not that of the space.
  """
  found = leaves(space)
  writers = [_column_writer(leaf, column) for leaf, column in zip(
      found, columns(array), strict=True)]
  if not composite(space):
    def write_alone(row: int, value: Any):
      _check_shape(found[0], value)
      writers[0](row, value)
    return write_alone
  def write(row: int, value: Any):
    for writer, part in zip(
        writers, _values(space, found, value), strict=True):
      writer(row, part)
  return write


def _column_writer(leaf: Leaf, column: np.ndarray
                   ) -> Callable[[int, Any], None]:
  if leaf.dtype == np.float32:
    return column.__setitem__
  def write(row: int, value: Any):
    value = np.asarray(value)
    column[row] = value
    if value.dtype != leaf.dtype and (column[row] != value).any():
      raise ValueError(
          f"The observation{leaf} holds {value!r}, which is not the same in "
          f"the type of its space, {leaf.dtype}.")
  return write


def _values(space: gymnasium.Space, leaves: list[Leaf], value: Any
            ) -> list[Any]:
  found = []
  for leaf in leaves:
    part = value
    for key in leaf.path:
      try:
        part = part[key if isinstance(part, dict) else int(key)]
      except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(f"The value {value!r} has no {leaf}, which is a part "
                         f"of its space {space}.") from None
    _check_shape(leaf, part)
    found.append(part)
  return found


def _check_shape(leaf: Leaf, value: Any):
  if np.shape(value) != leaf.shape:  # It might broadcast.
    raise ValueError(f"The observation{leaf} has shape {np.shape(value)}, its "
                     f"space {leaf.shape}.")


def _parts(space: gymnasium.Space) -> Iterator[tuple[str, gymnasium.Space]]:
  if isinstance(space, gym.Dict):
    for key, part in space.items():
      if not isinstance(key, str) or not key:
        raise TypeError(f"Space {space} is not supported: the keys of a Dict "
                        f"must be names. Received: {key!r}.")
      yield key, part
  else:
    assert isinstance(space, gym.Tuple)
    for index, part in enumerate(space.spaces):
      yield str(index), part


def _leaves(space: gymnasium.Space, acting: bool, path: tuple[str, ...],
            offset: int) -> Iterator[Leaf]:
  kind, shape = dtype(space, acting)
  if kind.names is None:
    yield Leaf(path, space, kind, shape, offset)
    return
  assert kind.fields
  for key, part in _parts(space):
    yield from _leaves(
        part, acting, (*path, key), offset + kind.fields[key][1])
