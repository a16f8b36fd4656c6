"""Values of composite spaces as vectors of bytes, see `agents.spaces`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from agents import spaces


def unpack(packed: tf.Tensor, leaves: Sequence[spaces.Leaf]
           ) -> list[tf.Tensor]:
  """Return the part of each leaf, of shape [..., *leaf.shape].

  Args:
    packed: Bytes, of shape [..., bytes].
    leaves: Where they lie.
  """
  return [restore(packed[..., leaf.offset:leaf.offset + leaf.num_bytes],
                  leaf.dtype, leaf.shape) for leaf in leaves]


def pack(parts: Sequence[tf.Tensor]) -> tf.Tensor:
  """Return bytes of shape [N, bytes] of parts of shape [N, ...]."""
  return tf.concat([as_bytes(part) for part in parts], -1)


def restore(raw: tf.Tensor, kind: np.dtype, shape: Sequence[int]) -> tf.Tensor:
  """Return a tensor of shape [..., *shape] from bytes of shape [..., bytes]."""
  steps = [tf.shape(raw)[axis] if size is None else size
           for axis, size in enumerate(raw.shape[:-1])]
  if kind == np.bool_:
    return tf.cast(tf.reshape(raw, [*steps, *shape]), tf.bool)
  if kind == np.uint8:
    return tf.reshape(raw, [*steps, *shape])
  size = [] if kind.itemsize == 1 else [kind.itemsize]
  return tf.bitcast(
      tf.reshape(raw, [*steps, *shape, *size]), tf.as_dtype(kind))


def as_bytes(part: tf.Tensor) -> tf.Tensor:
  """Return bytes of shape [N, bytes] of a tensor of shape [N, ...]."""
  if part.dtype == tf.bool:
    part = tf.cast(part, tf.uint8)
  size = math.prod(part.shape[1:]) * part.dtype.size
  return tf.reshape(tf.bitcast(part, tf.uint8), [-1, size])
