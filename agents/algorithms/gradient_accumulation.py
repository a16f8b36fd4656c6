"""Gradient accumulation: large batches are processed in chunks of equal size.

Only arrays of more than `MAX_ROWS` rows are split. Compiled programs need
static shapes, so arrays have room for the longest rollout. The loop over the
chunks stops after the last chunk with valid rows, so the time of an update is
proportional to the number of collected steps.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from agents import types
from agents.ops import loops, masked

MAX_ROWS = 2048  # Arrays up to this size are not split.
# Maximum number of rows per chunk; enough for matrix products at full speed.
_CHUNK_ROWS = 512


class ChunkedMinibatch(NamedTuple):
  """A `minibatches.Minibatch` of K chunks with C rows each."""

  samples: Any  # Structure of tensors of shape [K, C, ...].
  weight: tf.Tensor  # [K, C] float32, sums to one.
  num_chunks: tf.Tensor  # [] int32, number of chunks with valid rows.

  def sum(self, function: Callable[[Any, tf.Tensor], Any]) -> Any:
    """See `minibatches.Minibatch.sum`."""
    return sum_chunks(lambda chunk: function(*chunk), (self.samples, self.weight), self.num_chunks)


def split_minibatch(samples: Any, weight: tf.Tensor) -> ChunkedMinibatch:
  """Splits a minibatch into chunks.

  Args:
    samples: Structure of tensors of shape [N, ...].
    weight: Float tensor of shape [N], zero in the padding at the end.

  Returns:
    The chunks. Rows of weight zero pad the last chunk.
  """
  rows = weight.shape[0]
  padding = padded_rows(rows) - rows
  if padding:
    indices = tf.pad(tf.range(rows), [[0, padding]])
    samples = types.map_tensors(lambda tensor: tf.gather(tensor, indices), samples)
    weight = tf.pad(weight, [[0, padding]])
  return ChunkedMinibatch(
    split(samples), split(weight), num_filled(masked.valid_length(weight > 0), rows + padding)
  )


def map_rows(function: Callable[[Any], tf.Tensor], data: Any, num_rows: tf.Tensor) -> tf.Tensor:
  """Applies a function to the chunks that contain the first `num_rows` rows.

  Args:
    function: Maps a chunk of shape [C, ...] to a float32 tensor [C, ...].
    data: Tensor of shape [N, ...]; N is a result of `padded_rows`.
    num_rows: Number of rows to process.

  Returns:
    Tensor of shape [N, ...]; rows of unprocessed chunks are zero.
  """
  rows, chunks = data.shape[0], split(data)
  # XLA removes this computation, because only the shape is used.
  shape = function(take(chunks, 0)).shape
  outputs = tf.TensorArray(tf.float32, _num_chunks(rows), element_shape=shape)
  outputs = loops.repeat(
    num_filled(num_rows, rows),
    lambda index, outputs: outputs.write(index, function(take(chunks, index))),
    outputs,
  )
  return tf.reshape(outputs.stack(), [rows, *shape[1:]])


def sum_chunks(function: Callable[[Any], Any], data: Any, num_chunks: tf.Tensor) -> Any:
  """Sums the results of a function over the first `num_chunks` chunks.

  Args:
    function: Maps a chunk of shape [C, ...] to a structure of tensors.
    data: Structure of tensors of shape [K, C, ...].
    num_chunks: Number of chunks to process, from 1 to K.
  """
  # --8<-- [start:sum_chunks]
  return loops.repeat(
    num_chunks - 1,
    lambda index, result: tf.nest.map_structure(tf.add, result, function(take(data, index + 1))),
    function(take(data, 0)),
  )
  # --8<-- [end:sum_chunks]


def padded_rows(rows: int) -> int:
  """Rounds a number of rows up to a multiple of the number of chunks.

  Args:
    rows: Number of rows that the chunks must contain.
  """
  num_chunks = _num_chunks(rows)
  return num_chunks * -(-rows // num_chunks)


def split(data: Any) -> Any:
  """Reshapes tensors of shape [N, ...] to K chunks of C rows, [K, C, ...].

  Args:
    data: Structure of tensors; N is a result of `padded_rows`.
  """
  return types.map_tensors(
    lambda tensor: tf.reshape(tensor, [_num_chunks(tensor.shape[0]), -1, *tensor.shape[1:]]), data
  )


def num_filled(num_rows: tf.Tensor, rows: int) -> tf.Tensor:
  """Returns the number of chunks that contain the first `num_rows` rows.

  Args:
    num_rows: Integer tensor, at most `rows`.
    rows: Number of rows of all chunks, N.
  """
  size = rows // _num_chunks(rows)
  return (num_rows + size - 1) // size


def take(data: Any, index: tf.Tensor | int) -> Any:
  """Returns one chunk.

  Args:
    data: Structure of tensors of shape [K, C, ...].
    index: Index of the chunk, less than K.
  """
  return types.map_tensors(lambda tensor: tensor[index], data)


def _num_chunks(rows: int) -> int:
  return 1 if rows <= MAX_ROWS else -(-rows // _CHUNK_ROWS)
