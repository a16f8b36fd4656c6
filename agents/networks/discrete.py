"""Distributions over choices, numbered from 0; parameters are logits."""

import math
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from agents.networks import action_distribution
from agents.ops import random

tfd = tfp.distributions

_IMPOSSIBLE = -1e9  # Logit; gradients of infinite ones are not finite.


class Categorical(action_distribution.ActionDistribution):
  """Distribution over `space.n` choices.

  Args:
    space: Space of actions.
  """

  noise_kind = "gumbel"

  def __init__(self, space: gymnasium.spaces.Discrete):
    super().__init__((), np.zeros(int(space.n)), np.zeros(0), int(space.n))

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.Categorical(logits=parameters)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    return tf.argmax(parameters, -1)

  def noise(self, num_actions: int, key: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.noise`."""
    return _gumbel([num_actions, self.noise_size], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    # The argmax of logits plus Gumbel noise is a sample (Gumbel 1954).
    return tf.argmax(parameters + noise, -1)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    probability = tf.nn.softmax(parameters)
    return tf.reduce_mean(tf.sqrt(probability * (1 - probability)), -1)


class MultiCategorical(action_distribution.ActionDistribution):
  """Distribution over several independent choices.

  All choices have as many logits as the largest one; surplus logits are masked.

  Args:
    space: Space of actions.
  """

  noise_kind = "gumbel"

  def __init__(self, space: gymnasium.spaces.MultiDiscrete):
    choices = space.nvec.flatten()
    self._possible = np.arange(choices.max()) < choices[:, None]
    size = self._possible.size
    super().__init__(space.nvec.shape, np.zeros(size), np.zeros(0), size)

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.Independent(
        tfd.Categorical(logits=self._logits(parameters)), 1)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    best = tf.argmax(self._logits(parameters), -1)
    return tf.reshape(best, [-1, *self.shape])

  def noise(self, num_actions: int, key: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.noise`."""
    return _gumbel([num_actions, self.noise_size], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    return self.mode(parameters + noise)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    probability = tf.nn.softmax(self._logits(parameters))
    return tf.reduce_sum(
        tf.sqrt(probability * (1 - probability)), [-2, -1]
    ) / self._possible.sum()

  def _logits(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns logits of shape [..., dimensions, choices]."""
    shape = tf.concat([tf.shape(parameters)[:-1], self._possible.shape], 0)
    return tf.where(self._possible, tf.reshape(parameters, shape), _IMPOSSIBLE)


class Bernoulli(action_distribution.ActionDistribution):
  """Distribution over several independent bits.

  Args:
    space: Space of actions.
  """

  noise_kind = "uniform"

  def __init__(self, space: gymnasium.spaces.MultiBinary):
    size = math.prod(space.shape)
    super().__init__(space.shape, np.zeros(size), np.zeros(0), size)

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.Independent(tfd.Bernoulli(parameters, dtype=tf.int64), 1)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    return self._unflatten(parameters > 0)

  def noise(self, num_actions: int, key: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.noise`."""
    return random.uniform([num_actions, self.noise_size], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    return self._unflatten(noise < tf.sigmoid(parameters))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    probability = tf.sigmoid(parameters)
    return tf.reduce_mean(tf.sqrt(probability * (1 - probability)), -1)

  def _unflatten(self, bits: tf.Tensor) -> tf.Tensor:
    return tf.reshape(tf.cast(bits, tf.int64), [-1, *self.shape])


def _gumbel(shape: list[int], key: tf.Tensor) -> tf.Tensor:
  return -tf.math.log(-tf.math.log(random.uniform(shape, key)))
