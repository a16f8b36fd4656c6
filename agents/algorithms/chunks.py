"""Work on arrays that are only partly filled, in chunks of one size.

Compiled code wants shapes that never change. Going through a large array chunk
by chunk, only as far as it is filled, makes the time follow what is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from agents.ops import loops

_SIZE = 512  # Rows; enough for matrix products at full speed.
_SMALL = 2048  # Rows that are not worth splitting.


def whole(rows: int) -> int:
  """Return the least number, at least `rows`, that is split without a rest."""
  amount = _amount(rows)
  return amount * -(-rows // amount)


def split(data: Any) -> Any:
  """Reshape tensors of shape [N, ...] to K chunks of C rows, [K, C, ...].

  Args:
    data: Structure of tensors; N comes from `whole`.
  """
  return tf.nest.map_structure(lambda tensor: tf.reshape(
      tensor, [_amount(tensor.shape[0]), -1, *tensor.shape[1:]]), data)


def filled(count: tf.Tensor, rows: int) -> tf.Tensor:
  """Return how many chunks the first `count` of N `rows` fill or begin."""
  size = rows // _amount(rows)
  return (count + size - 1) // size


def apply(function: Callable[[Any], tf.Tensor], data: Any, amount: tf.Tensor,
          shape: tuple[int, ...] = ()) -> tf.Tensor:
  """Apply a function to the first chunks, at least one; the rest is zero.

  Args:
    function: From a chunk, [C, ...], to a float32 tensor of shape [C, *shape].
    data: Structure of tensors of shape [K, C, ...].
    amount: Number of chunks, up to K.
    shape: Of the function's result for one row.
  Returns:
    Tensor of shape [K, C, *shape].
  """
  most, size = tf.nest.flatten(data)[0].shape[:2]
  if most == 1:
    return function(take(data, 0))[None]  # Some of it is always filled.
  results = loops.repeat(
      amount,
      lambda index, results: results.write(index, function(take(data, index))),
      tf.TensorArray(tf.float32, most, element_shape=[size, *shape]))
  return tf.ensure_shape(results.stack(), [most, size, *shape])


def total(function: Callable[[Any], Any], data: Any, amount: tf.Tensor) -> Any:
  """Sum what a function returns for each of the first chunks, at least one.

  Args:
    function: From a chunk, [C, ...], to a structure of tensors.
    data: Structure of tensors of shape [K, C, ...].
    amount: Number of chunks, up to K.
  """
  first = function(take(data, 0))
  if tf.nest.flatten(data)[0].shape[0] == 1:
    return first
  return loops.repeat(
      amount - 1,
      lambda index, result: tf.nest.map_structure(
          tf.add, result, function(take(data, index + 1))), first)


def take(data: Any, index: tf.Tensor | int) -> Any:
  """Return one chunk."""
  return tf.nest.map_structure(lambda tensor: tensor[index], data)


def _amount(rows: int) -> int:
  return 1 if rows <= _SMALL else -(-rows // _SIZE)
