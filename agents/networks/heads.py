"""From a network's last layer to a distribution over actions.

A head reads `size` numbers for each state, the distribution's parameters. All
use of TensorFlow Probability is in this file.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from agents.ops import random

tfd = tfp.distributions


class Gaussian:
  """Independent normal distributions; parameters are means and log stds.

  Args:
    space: Box of actions.
  """

  def __init__(self, space: gymnasium.spaces.Box):
    # Bounds of the agent's actions, which the environment rescales.
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    self._low = np.where(bounded, -1, space.low)
    self._high = np.where(bounded, 1, space.high)
    self._shape = space.shape
    self.actions = math.prod(space.shape)
    self.size = 2 * self.actions

  def distribution(self, parameters: tf.Tensor) -> Any:
    """Distribution over flat actions for parameters of shape [..., size]."""
    mean, log_std = tf.split(parameters, 2, -1)
    return tfd.MultivariateNormalDiag(mean, tf.exp(log_std))

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    return self._unflatten(tf.split(parameters, 2, -1)[0])

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    """Random numbers for so many samples, of shape [amount, actions]."""
    return random.normal([amount, self.actions], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """Actions of shape [N, ...] by noise of shape [N, actions]."""
    mean, log_std = tf.split(parameters, 2, -1)
    return self._unflatten(mean + tf.exp(log_std) * noise)

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Log density of actions of shape [N, *space.shape], of shape [N]."""
    flat = tf.reshape(action, [-1, self.actions])
    return self.distribution(parameters).log_prob(flat)

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """Differential entropy in nats, of shape [...]."""
    return self.distribution(parameters).entropy()

  def kl(self, parameters: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """KL divergence from one distribution to another, of shape [...]."""
    return self.distribution(parameters).kl_divergence(
        self.distribution(other))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """Mean over the dimensions, of shape [...]; actions span [-1, 1]."""
    return tf.reduce_mean(tf.exp(tf.split(parameters, 2, -1)[1]), -1)

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    """Share of the dimensions that the environment clips, of shape [N]."""
    clipped = (action < self._low) | (action > self._high)
    flat = tf.reshape(clipped, [-1, self.actions])
    return tf.reduce_mean(tf.cast(flat, tf.float32), -1)

  def _unflatten(self, flat: tf.Tensor) -> tf.Tensor:
    return tf.reshape(flat, [-1, *self._shape])


class Categorical:
  """One of `space.n` choices; parameters are logits.

  Args:
    space: Discrete actions, here counted from 0.
  """

  def __init__(self, space: gymnasium.spaces.Discrete):
    self.actions = self.size = int(space.n)

  def distribution(self, parameters: tf.Tensor) -> Any:
    """Distribution over choices for logits of shape [..., size]."""
    return tfd.Categorical(logits=parameters)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    return tf.argmax(parameters, -1)

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    """Random numbers for so many samples, of shape [amount, actions]."""
    uniform = random.uniform([amount, self.actions], key)
    return -tf.math.log(-tf.math.log(uniform))

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """Actions of shape [N, ...] by noise of shape [N, actions]."""
    # The largest logit plus Gumbel noise is a sample (Gumbel 1954).
    return tf.argmax(parameters + noise, -1)

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Log probability of choices of shape [N], of shape [N]."""
    return self.distribution(parameters).log_prob(action)

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """Entropy in nats, of shape [...]."""
    return self.distribution(parameters).entropy()

  def kl(self, parameters: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """KL divergence from one distribution to another, of shape [...]."""
    return self.distribution(parameters).kl_divergence(
        self.distribution(other))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """Mean over the choice as a one-hot vector, of shape [...]."""
    probability = tf.nn.softmax(parameters)
    return tf.reduce_mean(tf.sqrt(probability * (1 - probability)), -1)

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    """Zeros of shape [N]: no choice is clipped."""
    return tf.zeros_like(action, tf.float32)


def make(space: gymnasium.Space) -> Gaussian | Categorical:
  """Return the head for an action space."""
  if isinstance(space, gymnasium.spaces.Discrete):
    return Categorical(space)
  assert isinstance(space, gymnasium.spaces.Box)
  return Gaussian(space)
