"""Random numbers that depend only on a seed and a counter.

Eager execution, graphs and XLA return the same numbers; only normal numbers can
differ in their last bits. TensorFlow's stateful generators ignore the seed when
XLA compiles them.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf


def stream(run_seed: int, name: str) -> int:
  """Returns the seed of an independent stream of random numbers.

  Args:
    run_seed: Seed of the run.
    name: Name of the stream.
  """
  sequence = np.random.SeedSequence(run_seed, spawn_key=tuple(name.encode()))
  return int(sequence.generate_state(1)[0])


def key(stream_seed: int, counter: tf.Tensor) -> tf.Tensor:
  """Returns a random key of shape [2]; use each key only once.

  Args:
    stream_seed: Result of `stream`.
    counter: Integer; different values lead to different random numbers.
  """
  return tf.stack([tf.constant(stream_seed, tf.int64), tf.cast(counter, tf.int64)])


def split(key_: tf.Tensor, num_keys: int) -> tf.Tensor:
  """Derives several keys, of shape [num_keys, 2], from one key.

  Args:
    key_: Result of `key`; do not use this key for anything else.
    num_keys: Number of keys.
  """
  return tf.cast(_bits([num_keys, 2], key_), tf.int64)


def uniform(shape: Sequence[int] | tf.Tensor, key_: tf.Tensor) -> tf.Tensor:
  """Returns uniform random numbers in [0, 1), multiples of 2^-24.

  Args:
    shape: Shape of the result.
    key_: Result of `key`.
  """
  bits = tf.bitcast(_bits(shape, key_), tf.uint32)
  bits = tf.bitwise.right_shift(bits, tf.constant(8, tf.uint32))
  return tf.cast(bits, tf.float32) * 2.0**-24


def normal(shape: Sequence[int], key_: tf.Tensor) -> tf.Tensor:
  """Returns standard normal random numbers (Box and Muller 1958).

  Args:
    shape: Shape of the result.
    key_: Result of `key`.
  """
  radius, angle = tf.unstack(uniform(tf.concat([[2], shape], 0), key_), num=2)
  return tf.sqrt(-2 * tf.math.log(1 - radius)) * tf.cos(2 * np.pi * angle)


def permutation(size: int, key_: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
  """Returns the indices below `size`; selected indices come first, shuffled.

  All other indices follow in ascending order.

  Args:
    size: Number of indices.
    key_: Result of `key`.
    first: Bool tensor of shape [size], true for the selected indices.
  """
  # tf.random.experimental.stateless_shuffle does not compile under XLA.
  bits = tf.where(first, _bits([size], key_), tf.int32.max)
  return tf.argsort(bits, stable=True)


def _bits(shape: Sequence[int] | tf.Tensor, key_: tf.Tensor) -> tf.Tensor:
  """Returns random int32 numbers, negative ones included."""
  # With Philox, XLA returns the same integers as eager execution. Floats would
  # differ if the key is not a constant (tensorflow issues 117644 and 121243).
  return tf.random.stateless_uniform(
    shape, key_, minval=None, maxval=None, dtype=tf.int32, alg="philox"
  )
