"""Means over those elements that count."""

from __future__ import annotations

import tensorflow as tf


def count(valid: tf.Tensor) -> tf.Tensor:
  """Return how many elements are true, int32."""
  return tf.reduce_sum(tf.cast(valid, tf.int32))


def extent(valid: tf.Tensor) -> tf.Tensor:
  """Return how many elements there are up to the last true one, int32."""
  places = tf.range(1, valid.shape[0] + 1)
  return tf.reduce_max(tf.where(valid, places, 0))


def weight(valid: tf.Tensor, axis: int | None = None) -> tf.Tensor:
  """Return weights for a mean over true elements, zero for the others.

  Args:
    valid: Bool tensor of any shape.
    axis: Where the weights sum to one; over all elements by default.
  """
  mask = tf.cast(valid, tf.float32)
  return mask / tf.maximum(tf.reduce_sum(mask, axis, keepdims=True), 1.0)


def mean(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Return the mean of values; the weights have the same shape."""
  return tf.reduce_sum(weights * values)


def variance(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Return the mean squared deviation from the mean."""
  return mean(tf.square(values - mean(values, weights)), weights)


def normalize(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Shift and scale to mean 0 and standard deviation 1."""
  std = tf.sqrt(variance(values, weights))
  return (values - mean(values, weights)) / (std + 1e-8)
