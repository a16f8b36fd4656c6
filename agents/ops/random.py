"""Random numbers that depend on a seed and a counter, and on nothing else.

The Philox generator gives the same numbers eagerly, in graphs and under XLA;
TensorFlow's stateful generators ignore the seed when compiled.
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


def normal(shape, key_: tf.Tensor) -> tf.Tensor:
  """Standard normal numbers."""
  return tf.random.stateless_normal(shape, key_, alg="philox")


def uniform(shape, key_: tf.Tensor) -> tf.Tensor:
  """Numbers in [0, 1)."""
  return tf.random.stateless_uniform(shape, key_, alg="philox")


def permutation(size: int, key_: tf.Tensor) -> tf.Tensor:
  """The numbers below `size` in random order."""
  # stateless_shuffle does not compile under XLA.
  return tf.argsort(uniform([size], key_), stable=True)
