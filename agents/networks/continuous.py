"""Distributions over the actions of a Box.

Agents act in [-1, 1] wherever the space is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from agents import config as config_lib
from agents.networks import action_distribution
from agents.ops import random

tfb = tfp.bijectors
tfd = tfp.distributions

_INSIDE = 1 - 2.0 ** -23  # Densities on (-1, 1) are finite up to here.
# For expectations under normal distributions. Entropies of squashed ones are
# off by 2e-3 nats at a std of 2, and by 3e-6 at a std of 1.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS /= math.sqrt(2 * math.pi)
_TRIES = 4  # Of which one in twenty fails, at most.


class Gaussian(action_distribution.ActionDistribution):
  """Independent normal distributions; parameters are means and log stds.

  Args:
    space: Box of actions.
    config: Activation of the mean, and what the std is and depends on.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network):
    # Bounds of the agent's actions, which the environment rescales.
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    self._low = np.where(bounded, -1, space.low)
    self._high = np.where(bounded, 1, space.high)
    self._mean_activation = config.mean_activation
    self._actions = math.prod(space.shape)
    means = np.zeros(self._actions)
    log_stds = np.full(self._actions, math.log(config.init_std))
    if config.state_dependent_std:
      outputs, free = np.concatenate([means, log_stds]), np.zeros(0)
    else:
      outputs, free = means, log_stds
    super().__init__(space.shape, outputs, free, self._actions)

  def parameters(self, outputs: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    mean, log_std = outputs, free
    if not self.initial_free.size:
      mean, log_std = tf.split(outputs, 2, -1)
    if self._mean_activation == "tanh":
      mean = tf.tanh(mean)
    return tf.concat([mean, tf.zeros_like(mean) + log_std], -1)

  def distribution(self, parameters: tf.Tensor) -> Any:
    mean, log_std = tf.split(parameters, 2, -1)
    return tfd.MultivariateNormalDiag(mean, tf.exp(log_std))

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    return self._unflatten(tf.split(parameters, 2, -1)[0])

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    return random.normal([amount, self.noise_size], key)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    mean, log_std = tf.split(parameters, 2, -1)
    return self._unflatten(mean + tf.exp(log_std) * noise)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.exp(tf.split(parameters, 2, -1)[1]), -1)

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    clipped = (action < self._low) | (action > self._high)
    flat = tf.reshape(clipped, [-1, self._actions])
    return tf.reduce_mean(tf.cast(flat, tf.float32), -1)

  def _unflatten(self, flat: tf.Tensor) -> tf.Tensor:
    return tf.reshape(flat, [-1, *self.shape])


class SquashedGaussian(Gaussian):
  """Hyperbolic tangents of normal variables (Haarnoja et al. 2018).

  Parameters are means and log stds of the normal distributions.

  Args:
    space: Box of actions, bounded everywhere.
    config: What the std is and depends on.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network):
    super().__init__(space, config)
    self._mean_activation = "linear"  # Squashed twice, none is at the bounds.

  def distribution(self, parameters: tf.Tensor) -> Any:
    return tfd.TransformedDistribution(
        super().distribution(parameters), tfb.Tanh())

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """The median, as the density can have two modes."""
    return _inside(tf.tanh(super().mode(parameters)))

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    return _inside(tf.tanh(super().sample(parameters, noise)))

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    log_slope = self._expectation(
        lambda x: tfb.Tanh().forward_log_det_jacobian(x), parameters)
    return super().distribution(parameters).entropy() + tf.reduce_sum(
        log_slope, -1)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    mean = self._expectation(tf.tanh, parameters)[..., None]
    variance = self._expectation(
        lambda x: tf.square(tf.tanh(x) - mean), parameters)
    return tf.reduce_mean(tf.sqrt(variance), -1)

  def _expectation(self, function: Callable[[tf.Tensor], tf.Tensor],
                   parameters: tf.Tensor) -> tf.Tensor:
    """Of a function of each normal variable, by Gauss-Hermite quadrature."""
    mean, log_std = tf.split(parameters[..., None], 2, -2)
    points = mean + tf.exp(log_std) * _POINTS.astype(np.float32)
    return tf.reduce_sum(function(points) * _WEIGHTS.astype(np.float32), -1)


class Beta(action_distribution.ActionDistribution):
  """Beta distributions, stretched to [-1, 1] (Chou et al. 2017).

  Parameters are two for each dimension, of which `1 + softplus` is the
  concentration at the upper and the lower bound; so there is a single mode.

  Args:
    space: Box of actions, bounded everywhere.
    config: The initial std; 0.48 at most, which is that of outputs of zero.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network):
    concentration = (config.init_std ** -2 - 1) / 2
    excess = max(concentration - 1, math.log(2))
    self._parameters = 2 * math.prod(space.shape)
    super().__init__(
        space.shape, np.full(
            self._parameters, excess + math.log(-math.expm1(-excess))),
        np.zeros(0), 2 * _TRIES * self._parameters)

  @property
  def noise_kinds(self) -> tuple[tuple[str, int], ...]:
    half = self.noise_size // 2
    return ("normal", half), ("exponential", half)

  def distribution(self, parameters: tf.Tensor) -> Any:
    return tfd.TransformedDistribution(
        tfd.Independent(self._unstretched(parameters), 1),
        tfb.Chain([tfb.Shift(-1.0), tfb.Scale(2.0)]))

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    upper, lower = tf.split(tf.nn.softplus(parameters), 2, -1)
    return self._unflatten(
        tf.math.divide_no_nan(upper - lower, upper + lower))

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    shape = [amount, self.noise_size // 2]
    normal, exponential = tf.unstack(random.split(key, 2))
    return tf.concat([
        random.normal(shape, normal),
        -tf.math.log(1 - random.uniform(shape, exponential))], -1)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    normal, exponential = (
        tf.reshape(part, [-1, self._parameters, _TRIES])
        for part in tf.split(noise, 2, -1))
    gamma = _gamma(1 + tf.nn.softplus(parameters), normal, exponential)
    upper, lower = tf.split(gamma, 2, -1)
    return self._unflatten((upper - lower) / (upper + lower))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(2 * self._unstretched(parameters).stddev(), -1)

  def _unstretched(self, parameters: tf.Tensor) -> Any:
    upper, lower = tf.split(1 + tf.nn.softplus(parameters), 2, -1)
    return tfd.Beta(upper, lower)

  def _unflatten(self, flat: tf.Tensor) -> tf.Tensor:
    return tf.reshape(_inside(flat), [-1, *self.shape])


def _inside(action: tf.Tensor) -> tf.Tensor:
  return tf.clip_by_value(action, -_INSIDE, _INSIDE)


def _gamma(concentration: tf.Tensor, normal: tf.Tensor,
           exponential: tf.Tensor) -> tf.Tensor:
  """Gamma variables from those of several tries (Marsaglia and Tsang 2000).

  Args:
    concentration: Of shape [...], at least 1.
    normal, exponential: Of shape [..., tries].
  """
  scale = concentration[..., None] - 1 / 3
  root = 1 + normal / tf.sqrt(9 * scale)
  cube = tf.maximum(root, 1e-6) ** 3
  accepted = (root > 0) & (-exponential < 0.5 * tf.square(normal)
                           + scale * (1 - cube + tf.math.log(cube)))
  # None is accepted 6 times in a million, at most; then it is the mode.
  result = tf.ones_like(concentration)
  for index in range(_TRIES):
    result = tf.where(accepted[..., index], cube[..., index], result)
  return scale[..., 0] * result
