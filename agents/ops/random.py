"""Random numbers that depend on a seed and a counter, and on nothing else.

The same numbers come eagerly, in graphs and under XLA. TensorFlow's stateful
generators ignore the seed when compiled.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf


def stream(run_seed: int, name: str) -> int:
  """Seed of one of a run's independent streams, told apart by name."""
  sequence = np.random.SeedSequence(run_seed, spawn_key=tuple(name.encode()))
  return int(sequence.generate_state(1)[0])


def key(stream_seed: int, counter: tf.Tensor) -> tf.Tensor:
  """Key of shape [2] for one use; every counter gives other numbers."""
  return tf.stack([tf.constant(stream_seed, tf.int64),
                   tf.cast(counter, tf.int64)])


def split(key_: tf.Tensor, amount: int) -> tf.Tensor:
  """Keys of shape [amount, 2] for so many uses, in place of one for one."""
  return tf.cast(_bits([amount, 2], key_), tf.int64)


def uniform(shape, key_: tf.Tensor) -> tf.Tensor:
  """Numbers in [0, 1), multiples of 2^-24."""
  bits = tf.bitcast(_bits(shape, key_), tf.uint32)
  bits = tf.bitwise.right_shift(bits, tf.constant(8, tf.uint32))
  return tf.cast(bits, tf.float32) * 2.0 ** -24


def normal(shape, key_: tf.Tensor) -> tf.Tensor:
  """Standard normal numbers (Box and Muller 1958)."""
  radius, angle = tf.unstack(uniform(tf.concat([[2], shape], 0), key_), num=2)
  return tf.sqrt(-2 * tf.math.log(1 - radius)) * tf.cos(2 * np.pi * angle)


def permutation(size: int, key_: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
  """Numbers below `size`: those where `first`, in random order, then others."""
  # stateless_shuffle does not compile under XLA.
  bits = tf.where(first, _bits([size], key_), tf.int32.max)
  return tf.argsort(bits, stable=True)


def _bits(shape, key_: tf.Tensor) -> tf.Tensor:
  # Only the integers of Philox are the same under XLA; its floats differ once
  # the key is not a constant (tensorflow issues 117644 and 121243).
  return tf.random.stateless_uniform(
      shape, key_, minval=None, maxval=None, dtype=tf.int32, alg="philox")
