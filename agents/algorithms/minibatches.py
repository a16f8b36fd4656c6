"""Random minibatches of a batch of experience."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from agents.algorithms import gradient_accumulation
from agents.ops import masked, random


class Minibatch(NamedTuple):
  """Rows of one gradient step."""

  samples: Any  # Structure of tensors of shape [M, ...].
  weight: tf.Tensor  # [M] float32, sums to one; zero for padding.

  def sum(self, function: Callable[[Any, tf.Tensor], Any]) -> Any:
    """Sums the results of a function over all rows.

    Args:
      function: Returns a structure of sums over rows, given their samples and
        weights. `ChunkedMinibatch` calls the function once per chunk and adds
        the results.
    """
    return function(self.samples, self.weight)


AnyMinibatch = Minibatch | gradient_accumulation.ChunkedMinibatch


class Minibatches(NamedTuple):
  """Minibatches that contain every valid row exactly once."""

  samples: Any  # Structure of tensors of shape [N, ...].
  rows: tf.Tensor  # [minibatches, M] int32, row indices.
  weight: tf.Tensor  # [minibatches, M] float32, zero for padding.
  num_minibatches: tf.Tensor  # [] int32, minibatches with valid rows.

  def take(self, index: tf.Tensor) -> AnyMinibatch:
    """Returns one minibatch.

    Args:
      index: Index of the minibatch.
    """
    # With `rows[index]`, XLA would compile again for each value of `index`.
    rows, weight = tf.gather(self.rows, index), tf.gather(self.weight, index)
    samples = tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), self.samples)
    return minibatch(samples, weight)


class FullBatch(NamedTuple):
  """All rows as the only minibatch."""

  minibatch: AnyMinibatch
  num_minibatches: int = 1

  def take(self, index: tf.Tensor) -> AnyMinibatch:
    """Returns the only minibatch, whatever the index."""
    return self.minibatch


def shuffle_split(
  samples: Any, valid: tf.Tensor, size: int | None, key: tf.Tensor
) -> Minibatches | FullBatch:
  """Splits the valid rows randomly into minibatches.

  Args:
    samples: Structure of tensors of shape [N, ...].
    valid: Bool tensor of shape [N]; the true elements precede the false ones.
    size: Number of rows per minibatch; the last minibatch may have fewer valid
      rows. None puts all rows into one minibatch.
    key: Random key of shape [2].
  """
  if size is None:
    return FullBatch(minibatch(samples, masked.weight(valid)))
  rows = random.permutation(valid.shape[0], key, first=valid)
  rows = tf.where(valid, rows, rows[0])  # Padding repeats a valid row.
  padding = [[0, -valid.shape[0] % size]]
  rows, is_valid = (tf.reshape(tf.pad(x, padding), [-1, size]) for x in (rows, valid))
  weight = masked.weight(is_valid, axis=1)
  return Minibatches(samples, rows, weight, (masked.valid_length(valid) + size - 1) // size)


def minibatch(samples: Any, weight: tf.Tensor) -> AnyMinibatch:
  """Returns a minibatch.

  A minibatch with more than `gradient_accumulation.MAX_ROWS` rows is split into
  chunks.

  Args:
    samples: Structure of tensors of shape [M, ...].
    weight: Result of `masked.weight`, [M]; zero in the padding at the end.
  """
  if weight.shape[0] > gradient_accumulation.MAX_ROWS:
    return gradient_accumulation.split_minibatch(samples, weight)
  return Minibatch(samples, weight)


def map_rows(function: Callable[[Any], tf.Tensor], data: Any, num_rows: tf.Tensor) -> tf.Tensor:
  """Applies a function to the first `num_rows` of N rows.

  Args:
    function: Maps a tensor of shape [M, ...] to a float32 tensor [M, ...].
    data: Tensor of shape [N, ...].
    num_rows: Number of rows that need results; the results of all other rows
      are arbitrary.

  Returns:
    Tensor of shape [N, ...].
  """
  if data.shape[0] > gradient_accumulation.MAX_ROWS:
    return gradient_accumulation.map_rows(function, data, num_rows)
  return function(data)
