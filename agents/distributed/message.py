"""Converts messages between machines to bytes: JSON and arrays, no code."""

import json
import math
from typing import Any

import numpy as np

_HEADER_BYTES = 8  # Length of the JSON text.
_ARRAY = "array of type and shape"  # Key of a JSON object in place of an array.


def encode(value: Any) -> bytes:
  """Converts a value to bytes.

  Args:
    value: Nested lists, tuples and dicts of JSON values, NumPy numbers and
      arrays. Keys of dicts are texts.
  """
  arrays = []

  def replace(item: Any) -> Any:
    if isinstance(item, np.generic):
      return item.item()
    if not isinstance(item, np.ndarray):
      raise TypeError(f"A message can't contain {item!r}.")
    arrays.append(item.tobytes())
    return {_ARRAY: [item.dtype.str, item.shape]}

  text = json.dumps(value, default=replace).encode()
  return b"".join([len(text).to_bytes(_HEADER_BYTES, "little"), text, *arrays])


def decode(data: bytes) -> Any:
  """Restores a value that `encode` has converted.

  Args:
    data: Bytes.

  Returns:
    The value, in which tuples and NumPy numbers have become lists and numbers.

  Raises:
    ValueError: If the bytes are no message.
  """
  position = _HEADER_BYTES + int.from_bytes(data[:_HEADER_BYTES], "little")

  def restore(item: dict[str, Any]) -> Any:
    nonlocal position
    if item.keys() != {_ARRAY}:
      return item
    dtype, shape = np.dtype(item[_ARRAY][0]), item[_ARRAY][1]
    # Rejects arrays of Python objects, and arrays that exceed the data.
    array = np.frombuffer(data, dtype, math.prod(shape), position).reshape(shape)
    position += array.nbytes
    return array.copy()

  return json.loads(data[_HEADER_BYTES:position], object_hook=restore)
