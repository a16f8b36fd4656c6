"""Distributions over choices, which are counted from 0.

Parameters are logits.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from agents.networks import action_distribution
from agents.ops import random

tfd = tfp.distributions

_NEVER = -1e9  # A logit. Infinite ones have gradients that aren't finite.


class Categorical(action_distribution.ActionDistribution):
  """One of `space.n` choices.

  Args:
    space: Discrete actions.
  """

  noise_kind = "gumbel"

  def __init__(self, space: gymnasium.spaces.Discrete):
    super().__init__((), np.zeros(int(space.n)), np.zeros(0), int(space.n))

  def distribution(self, parameters: tf.Tensor) -> Any:
    return tfd.Categorical(logits=parameters)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    return tf.argmax(parameters, -1)

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    return _gumbel([amount, self.noise_size], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    # The largest logit plus Gumbel noise is a sample (Gumbel 1954).
    return tf.argmax(parameters + noise, -1)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    probability = tf.nn.softmax(parameters)
    return tf.reduce_mean(tf.sqrt(probability * (1 - probability)), -1)


class MultiCategorical(action_distribution.ActionDistribution):
  """Several independent choices, each with as many logits as the widest.

  Args:
    space: MultiDiscrete actions.
  """

  noise_kind = "gumbel"

  def __init__(self, space: gymnasium.spaces.MultiDiscrete):
    choices = space.nvec.flatten()
    self._possible = np.arange(choices.max()) < choices[:, None]
    size = self._possible.size
    super().__init__(space.nvec.shape, np.zeros(size), np.zeros(0), size)

  def distribution(self, parameters: tf.Tensor) -> Any:
    return tfd.Independent(
        tfd.Categorical(logits=self._logits(parameters)), 1)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    best = tf.argmax(self._logits(parameters), -1)
    return tf.reshape(best, [-1, *self.shape])

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    return _gumbel([amount, self.noise_size], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    return self.mode(parameters + noise)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    probability = tf.nn.softmax(self._logits(parameters))
    return tf.reduce_sum(
        tf.sqrt(probability * (1 - probability)), [-2, -1]
    ) / self._possible.sum()

  def _logits(self, parameters: tf.Tensor) -> tf.Tensor:
    """Of shape [..., dimensions, choices]."""
    shape = tf.concat([tf.shape(parameters)[:-1], self._possible.shape], 0)
    return tf.where(self._possible, tf.reshape(parameters, shape), _NEVER)


class Bernoulli(action_distribution.ActionDistribution):
  """Independent choices of 0 or 1.

  Args:
    space: MultiBinary actions.
  """

  noise_kind = "uniform"

  def __init__(self, space: gymnasium.spaces.MultiBinary):
    size = math.prod(space.shape)
    super().__init__(space.shape, np.zeros(size), np.zeros(0), size)

  def distribution(self, parameters: tf.Tensor) -> Any:
    return tfd.Independent(tfd.Bernoulli(parameters, dtype=tf.int64), 1)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    return self._unflatten(parameters > 0)

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    return random.uniform([amount, self.noise_size], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    return self._unflatten(noise < tf.sigmoid(parameters))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    probability = tf.sigmoid(parameters)
    return tf.reduce_mean(tf.sqrt(probability * (1 - probability)), -1)

  def _unflatten(self, chosen: tf.Tensor) -> tf.Tensor:
    return tf.reshape(tf.cast(chosen, tf.int64), [-1, *self.shape])


def _gumbel(shape: list[int], key: tf.Tensor) -> tf.Tensor:
  return -tf.math.log(-tf.math.log(random.uniform(shape, key)))
