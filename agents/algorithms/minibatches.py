"""What each gradient step of an epoch learns from."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import tensorflow as tf

from agents.algorithms import chunks
from agents.ops import masked
from agents.ops import random


class Batch(NamedTuple):
  """Rows of one gradient step, in K chunks of C rows."""

  data: Any  # Structure of tensors of shape [K, C, ...].
  weight: tf.Tensor  # [K, C] float32, of each row in means over the batch.
  amount: tf.Tensor  # Chunks that hold any, the first ones.


class Minibatches(NamedTuple):
  """Batches that every valid row is in exactly once."""

  data: Any  # Structure of tensors of shape [N, ...].
  rows: tf.Tensor  # [batches, M] int32, numbers of rows.
  weight: tf.Tensor  # [batches, M] float32, of these rows.
  amount: tf.Tensor  # Batches that hold any rows, the first ones.

  def take(self, index: tf.Tensor) -> Batch:
    """Return one batch."""
    # Compiled anew for each index, were that an argument and no gather here.
    rows, weight = tf.gather(self.rows, index), tf.gather(self.weight, index)
    data = tf.nest.map_structure(
        lambda tensor: tf.gather(tensor, rows), self.data)
    return Batch(chunks.split(data), chunks.split(weight), chunks.filled(
        masked.count(weight > 0), rows.shape[0]))


class FullBatch(NamedTuple):
  """All rows as the only batch."""

  batch: Batch
  amount: int = 1

  def take(self, index: tf.Tensor) -> Batch:
    """Return the batch, whatever the index."""
    return self.batch


def deal(data: Any, valid: tf.Tensor, size: int | None, key: tf.Tensor
         ) -> Minibatches | FullBatch:
  """Deal the valid rows into random minibatches.

  Args:
    data: Structure of tensors of shape [N, ...].
    valid: Bool tensor of shape [N], true in front and false behind.
    size: Rows of a minibatch; the last one may have less. None: all.
    key: Random key of shape [2].
  """
  if size is None:
    return FullBatch(everything(data, valid))
  rows = valid.shape[0]
  order = random.permutation(rows, key, first=valid)
  order = tf.where(valid, order, order[0])  # Padding as harmless as any row.
  order, counts = (
      tf.pad(tf.reshape(tf.pad(tensor, [[0, -rows % size]]), [-1, size]),
             [[0, 0], [0, chunks.whole(size) - size]])
      for tensor in (order, valid))
  return Minibatches(data, order, masked.weight(counts, axis=1),
                     (masked.count(valid) + size - 1) // size)


def everything(data: Any, valid: tf.Tensor) -> Batch:
  """Return all rows as one batch."""
  return Batch(chunks.split(data), chunks.split(masked.weight(valid)),
               chunks.filled(masked.extent(valid), valid.shape[0]))
