"""Distributions over discrete actions.

The options of a choice are integers from 0. The parameters are logits.
"""

import math
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from agents.networks import action_distribution

tfd = tfp.distributions

MASKED_LOGIT = -1e9  # With -inf, gradients would not be finite.


class Categorical(action_distribution.ActionDistribution):
  """Distribution over one choice or several independent ones.

  Every choice has as many logits as the choice with the most options. Surplus
  logits are masked.

  Args:
    sizes: Number of options of each choice, in the shape of an action.
  """

  def __init__(self, sizes: np.ndarray) -> None:
    self._possible = np.arange(sizes.max()) < sizes.reshape([-1, 1])
    size = self._possible.size
    super().__init__(sizes.shape, np.zeros(size), np.zeros(0), ("gumbel", size))

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.Independent(tfd.Categorical(logits=self._logits(parameters)), 1)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    return self._to_action(tf.argmax(self._logits(parameters), -1))

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    # The argmax of logits plus Gumbel noise is a sample (Gumbel 1954).
    return self.mode(parameters + noise)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    probability = tf.nn.softmax(self._logits(parameters))
    std = tf.sqrt(probability * (1 - probability))
    return tf.reduce_sum(std, [-2, -1]) / self._possible.sum()

  def _logits(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns logits of shape [..., choices, options]."""
    shape = tf.concat([tf.shape(parameters)[:-1], self._possible.shape], 0)
    logits = tf.reshape(parameters, shape)
    return logits if self._possible.all() else tf.where(self._possible, logits, MASKED_LOGIT)


class Bernoulli(action_distribution.ActionDistribution):
  """Distribution over several independent bits.

  Args:
    space: Space of actions.
  """

  def __init__(self, space: gymnasium.spaces.MultiBinary) -> None:
    size = math.prod(space.shape)
    super().__init__(space.shape, np.zeros(size), np.zeros(0), ("uniform", size))

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.Independent(tfd.Bernoulli(parameters, dtype=tf.int64), 1)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    return self._to_action(tf.cast(parameters > 0, tf.int64))

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    return self._to_action(tf.cast(noise < tf.sigmoid(parameters), tf.int64))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    probability = tf.sigmoid(parameters)
    return tf.reduce_mean(tf.sqrt(probability * (1 - probability)), -1)
