"""Values of composite spaces as vectors of bytes, see `agents.spaces`."""

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from agents import spaces


def unpack(packed: tf.Tensor, leaves: Sequence[spaces.Leaf]) -> list[tf.Tensor]:
  """Returns the values of all leaves, of shape [..., *leaf.shape].

  Args:
    packed: Tensor of shape [..., num_bytes], uint8.
    leaves: Types, shapes and byte offsets of the values.
  """
  return [
    restore(packed[..., leaf.offset : leaf.offset + leaf.num_bytes], leaf.dtype, leaf.shape)
    for leaf in leaves
  ]


def pack(values: Sequence[tf.Tensor]) -> tf.Tensor:
  """Concatenates the bytes of values.

  Args:
    values: One tensor of shape [N, ...] for each leaf.

  Returns:
    Tensor of shape [N, num_bytes], uint8.
  """
  return tf.concat([as_bytes(value) for value in values], -1)


def restore(raw: tf.Tensor, dtype: np.dtype, shape: Sequence[int]) -> tf.Tensor:
  """Converts bytes to a tensor.

  Args:
    raw: Tensor of shape [..., num_bytes], uint8.
    dtype: Type of the result.
    shape: Shape of one value.

  Returns:
    Tensor of shape [..., *shape].
  """
  batch = [tf.shape(raw)[axis] if n is None else n for axis, n in enumerate(raw.shape[:-1])]
  size = [] if dtype.itemsize == 1 else [dtype.itemsize]
  split = tf.reshape(raw, [*batch, *shape, *size])
  if dtype == np.bool_:
    return tf.cast(split, tf.bool)
  return split if dtype == np.uint8 else tf.bitcast(split, dtype)


def as_bytes(value: tf.Tensor) -> tf.Tensor:
  """Converts a tensor to bytes.

  Args:
    value: Tensor of shape [N, ...].

  Returns:
    Tensor of shape [N, num_bytes], uint8.
  """
  if value.dtype == tf.bool:
    value = tf.cast(value, tf.uint8)
  size = math.prod(value.shape[1:]) * value.dtype.size
  return tf.reshape(tf.bitcast(value, tf.uint8), [-1, size])
