"""Random minibatches of the rows of a data set."""

from __future__ import annotations

from typing import TypeVar

import tensorflow as tf

from agents.ops import random

Data = TypeVar("Data")


def shuffle(data: Data, size: int, key: tf.Tensor) -> Data:
  """Deal all rows into minibatches, each row into exactly one.

  Args:
    data: Structure of tensors of shape [N, ...].
    size: Rows of a minibatch, M; it divides N.
    key: Random key of shape [2].
  Returns:
    The structure, with tensors of shape [N / M, M, ...].
  Raises:
    ValueError: If the size does not divide the number of rows.
  """
  rows = tf.nest.flatten(data)[0].shape[0]
  if rows % size:
    raise ValueError(f"Minibatches of {size} don't divide {rows} rows.")
  order = random.permutation(rows, key)
  def deal(tensor):
    return tf.reshape(tf.gather(tensor, order),
                      [rows // size, size, *tensor.shape[1:]])
  return tf.nest.map_structure(deal, data)


def take(batches: Data, index: tf.Tensor) -> Data:
  """Return minibatch `index` of what `shuffle` dealt."""
  return tf.nest.map_structure(lambda tensor: tensor[index], batches)
