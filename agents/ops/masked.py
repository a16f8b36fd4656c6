"""Means over the valid elements of a tensor."""

import tensorflow as tf


def valid_length(valid: tf.Tensor) -> tf.Tensor:
  """Returns the number of rows up to and including the last valid row, int32.

  Args:
    valid: Bool tensor of shape [N].
  """
  positions = tf.range(1, valid.shape[0] + 1)
  return tf.reduce_max(tf.where(valid, positions, 0))


def weight(valid: tf.Tensor, axis: int | None = None) -> tf.Tensor:
  """Returns weights for a mean over the true elements.

  Args:
    valid: Bool tensor of any shape.
    axis: Axis along which the weights sum to one; all axes by default.

  Returns:
    Float32 tensor of the shape of `valid`, zero where `valid` is false.
  """
  mask = tf.cast(valid, tf.float32)
  return mask / tf.maximum(tf.reduce_sum(mask, axis, keepdims=True), 1.0)


def mean(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Returns the weighted mean.

  Args:
    values: Float tensor of any shape.
    weights: Result of `weight`, of the shape of `values`.
  """
  return tf.reduce_sum(weights * values)


def variance(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Returns the weighted variance.

  Args:
    values: Float tensor of any shape.
    weights: Result of `weight`, of the shape of `values`.
  """
  return mean(tf.square(values - mean(values, weights)), weights)


def normalize(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Shifts and scales values to weighted mean 0 and standard deviation 1.

  Args:
    values: Float tensor of any shape.
    weights: Result of `weight`, of the shape of `values`.
  """
  # --8<-- [start:normalize]
  std = tf.sqrt(variance(values, weights))
  return (values - mean(values, weights)) / (std + 1e-8)
  # --8<-- [end:normalize]
