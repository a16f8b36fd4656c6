"""Gymnasium spaces as arrays.

A value of a simple space (Box, Discrete, MultiDiscrete, MultiBinary) becomes an
array with the type and shape of `dtype`. A value of a composite space (Dict or
Tuple, possibly nested) becomes one element of a structured NumPy type with one
field per part. TensorFlow has no structured types, so the graph receives the
bytes of the element as a vector. `leaves` lists the byte offset of each part.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces as gym

_MIN_IMAGE_SIDE = 36  # Pixels; minimum for the "nature" convolutions.

RowWriter = Callable[[int, Any], None]  # Arguments: index of a row, and value.


class Leaf(NamedTuple):
  """A simple space, alone or as a part of a composite space."""

  # Dict keys, and Tuple indices as strings; () if the space has no parent.
  path: tuple[str, ...]
  space: gymnasium.Space
  dtype: np.dtype
  shape: tuple[int, ...]
  offset: int  # Bytes before this leaf in an element of the composite space.

  @property
  def num_bytes(self) -> int:
    """Size of one value in bytes."""
    return self.dtype.itemsize * int(np.prod(self.shape))

  @property
  def is_image(self) -> bool:
    """Whether networks apply convolutions to observations of this space."""
    return (
      self.dtype == np.uint8
      and len(self.shape) in (2, 3)
      and (sorted(self.shape)[-2] >= _MIN_IMAGE_SIDE)
    )

  def __str__(self) -> str:
    return "".join(f"[{key!r}]" for key in self.path)


def composite(space: gymnasium.Space) -> bool:
  """Returns whether values of a space are vectors of bytes in the graph."""
  return isinstance(space, (gym.Dict, gym.Tuple))


def dtype(space: gymnasium.Space, is_action: bool = False) -> tuple[np.dtype, tuple[int, ...]]:
  """Returns type and shape of the array that represents one value.

  Args:
    space: Observation or action space.
    is_action: Whether the values are actions of the agent: float32 in [-1, 1]
      or int64 from 0.

  Raises:
    TypeError: If no array can represent values of the space.
  """
  if composite(space):
    fields = [(key, *dtype(part, is_action)) for key, part in _parts(space)]
    if not fields:
      raise TypeError(f"Space {space} is not supported: it has no parts.")
    return np.dtype(fields), ()
  shape = space.shape or ()
  if isinstance(space, gym.Box):
    assert space.dtype is not None
    is_float = np.issubdtype(space.dtype, np.floating)
    if is_action and 0 in shape:
      raise TypeError(f"Action space {space} is not supported: it has no elements.")
    if is_action and not is_float:
      raise TypeError(
        f"Action space {space} is not supported: a Box of actions must have a floating-point type."
      )
    return np.dtype(np.float32 if is_float else space.dtype), shape
  if isinstance(space, gym.MultiBinary):
    return np.dtype(np.int64 if is_action else np.int8), shape
  if isinstance(space, (gym.Discrete, gym.MultiDiscrete)):
    return np.dtype(np.int64), shape
  raise TypeError(
    f"{'Action' if is_action else 'Observation'} space {space} is not "
    "supported. Supported are Box, Discrete, MultiDiscrete, MultiBinary, and "
    "Dict and Tuple of these."
  )


def check(observation: gymnasium.Space, action: gymnasium.Space) -> None:
  """Checks that arrays can represent observations and actions.

  Args:
    observation: Observation space.
    action: Action space.

  Raises:
    TypeError: If no array can represent values of one of the spaces, or if
      observations have no elements.
  """
  dtype(action, is_action=True)
  if not any(math.prod(leaf.shape) for leaf in leaves(observation)):
    raise TypeError(f"Observation space {observation} is not supported: it has no elements.")


def leaves(
  space: gymnasium.Space, is_action: bool = False, path: tuple[str, ...] = (), offset: int = 0
) -> list[Leaf]:
  """Returns the simple spaces that a space consists of, in order of offset.

  Args:
    space: Observation or action space.
    is_action: See `dtype`.
    path: Path of `space` within a composite space; see `Leaf`.
    offset: Byte offset of `space` within a composite space.

  Raises:
    TypeError: If no array can represent values of the space.
  """
  kind, shape = dtype(space, is_action)
  if kind.fields is None:
    return [Leaf(path, space, kind, shape, offset)]
  return [
    leaf
    for key, part in _parts(space)
    for leaf in leaves(part, is_action, (*path, key), offset + kind.fields[key][1])
  ]


def as_bytes(array: np.ndarray) -> np.ndarray:
  """Returns an array that TensorFlow accepts.

  Args:
    array: Array of shape [...], of a simple or structured type.

  Returns:
    `array` itself if its type is simple. Otherwise the bytes of each element,
    as an array of shape [..., itemsize] uint8.
  """
  if array.dtype.names is None:
    return array
  return np.ascontiguousarray(array)[..., None].view(np.uint8)


def from_bytes(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
  """Returns the array from which `as_bytes` computed its result.

  Args:
    array: Array of shape [...], or [..., itemsize] uint8 if `dtype` is a
      structured type.
    dtype: Type of the returned array.

  Returns:
    Array of shape [...].

  Raises:
    ValueError: If the conversion could lose fractions; see `converted`.
  """
  if dtype.names is None or array.dtype == dtype:
    return converted(array, dtype)
  return np.ascontiguousarray(array).view(dtype)[..., 0]


def converted(values: Any, dtype: np.dtype) -> np.ndarray:
  """Returns values as an array of another type.

  Args:
    values: Array, or nested sequences of numbers.
    dtype: Type of the returned array.

  Raises:
    ValueError: If the values are floats and `dtype` is an integer type.
  """
  array = np.asarray(values)
  if not np.can_cast(array.dtype, dtype, "same_kind"):
    raise ValueError(f"Actions must be of {dtype}, not of {array.dtype}; round them first.")
  return array.astype(dtype, copy=False)


def columns(array: np.ndarray) -> list[np.ndarray]:
  """Returns views of an array, one for each leaf of its space.

  Args:
    array: N values of a space: an array of shape [N, ...] for a simple space,
      or [N] of the structured type of a composite space.

  Returns:
    Arrays of shape [N, ...] that share memory with `array`.
  """
  if array.dtype.names is None:
    return [array]
  return [column for name in array.dtype.names for column in columns(array[name])]


def values(space: gymnasium.Space, value: Any, name: str = "observation") -> list[Any]:
  """Returns the part of a value that belongs to each leaf of a space.

  Args:
    space: Space of the value.
    value: Value as an environment returns it.
    name: Noun for the value in error messages.

  Raises:
    ValueError: If a part is missing or has another shape than its space.
  """
  parts = []
  for leaf in leaves(space):
    parts.append(_part(space, leaf, value))
    if np.shape(parts[-1]) != leaf.shape:
      raise _shape_error(leaf, parts[-1], name)
  return parts


def writer(space: gymnasium.Space, array: np.ndarray) -> RowWriter:
  """Returns a function that checks a value and writes it to a row of an array.

  Args:
    space: Space of the values.
    array: Array of shape [N, ...], with the type and shape of `dtype`.

  Returns:
    Function of row index and value. The function raises ValueError if a part is
    missing, has another shape than its space, or does not fit an integer type.
  """
  space_leaves = leaves(space)
  writers = [
    _leaf_writer(leaf, column) for leaf, column in zip(space_leaves, columns(array), strict=True)
  ]
  if not composite(space):
    return writers[0]

  def write(row: int, value: Any) -> None:
    for leaf, write_leaf in zip(space_leaves, writers, strict=True):
      write_leaf(row, _part(space, leaf, value))

  return write


def _leaf_writer(leaf: Leaf, column: np.ndarray) -> RowWriter:
  """Returns the function that writes values of a leaf to a [N, ...] array."""
  is_float = leaf.dtype == np.float32

  def write(row: int, part: Any) -> None:
    if np.shape(part) != leaf.shape:  # The assignment could broadcast `part`.
      raise _shape_error(leaf, part)
    column[row] = part = part if is_float else np.asarray(part)
    if not is_float and part.dtype != leaf.dtype and (column[row] != part).any():
      raise ValueError(
        f"The observation{leaf} contains {part!r}, but the type of its "
        f"space, {leaf.dtype}, can't represent this value."
      )

  return write


def _part(space: gymnasium.Space, leaf: Leaf, value: Any) -> Any:
  """Returns the part of a value that belongs to a leaf."""
  part = value
  for key in leaf.path:
    try:
      part = part[key if isinstance(part, dict) else int(key)]
    except (KeyError, IndexError, TypeError, ValueError):
      raise ValueError(
        f"The value {value!r} has no {leaf}, but its space {space} has this part."
      ) from None
  return part


def _shape_error(leaf: Leaf, value: Any, name: str = "observation") -> ValueError:
  return ValueError(
    f"The {name}{leaf} has shape {np.shape(value)}, but its space has shape {leaf.shape}."
  )


def _parts(space: gymnasium.Space) -> Iterator[tuple[str, gymnasium.Space]]:
  """Yields name and space of each direct part of a Dict or Tuple."""
  is_dict = isinstance(space, gym.Dict)
  parts: Any = space.spaces  # type: ignore[attr-defined]
  for key, part in parts.items() if is_dict else enumerate(parts):
    if is_dict and not (isinstance(key, str) and key):
      raise TypeError(
        f"Space {space} is not supported: the keys of a Dict "
        f"must be non-empty strings. Received: {key!r}."
      )
    yield str(key), part
