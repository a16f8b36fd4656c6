"""Distributions over the actions of a Box.

Agents act in [-1, 1] in every bounded dimension of the space.
"""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from agents import config as config_lib
from agents.networks import action_distribution

tfb = tfp.bijectors
tfd = tfp.distributions

_MAX_ACTION = 1 - 2.0 ** -23  # Beyond it, densities on (-1, 1) are infinite.
# Quadrature for expectations under normal distributions. The entropy of a
# squashed distribution has an error of 2e-3 nats at a std of 2, and of 3e-6
# nats at a std of 1.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS /= math.sqrt(2 * math.pi)
_TRIES = 4  # Each one is rejected with a probability of at most 1 / 20.


class Gaussian(action_distribution.ActionDistribution):
  """Independent normal distributions; parameters are means and log stds.

  Args:
    space: Box of actions.
    config: Activation of the mean, and initial value and kind of the std.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network):
    # The environment maps [-1, 1] to the bounds of the space.
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    self._low = np.where(bounded, -1, space.low)
    self._high = np.where(bounded, 1, space.high)
    self._mean_activation = config.mean_activation
    self._actions = math.prod(space.shape)
    means = np.zeros(self._actions)
    log_stds = np.full(self._actions, math.log(config.init_std))
    outputs, free = means, log_stds
    if config.state_dependent_std:
      outputs, free = np.concatenate([means, log_stds]), np.zeros(0)
    super().__init__(space.shape, outputs, free, ("normal", self._actions))

  def parameters(self, outputs: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.parameters`."""
    mean, log_std = outputs, free
    if not self.initial_free.size:
      mean, log_std = tf.split(outputs, 2, -1)
    if self._mean_activation == "tanh":
      mean = tf.tanh(mean)
    return tf.concat([mean, tf.zeros_like(mean) + log_std], -1)

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    mean, log_std = tf.split(parameters, 2, -1)
    return tfd.MultivariateNormalDiag(mean, tf.exp(log_std))

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    return self._to_action(tf.split(parameters, 2, -1)[0])

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    mean, log_std = tf.split(parameters, 2, -1)
    return self._to_action(mean + tf.exp(log_std) * noise)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    return tf.reduce_mean(tf.exp(tf.split(parameters, 2, -1)[1]), -1)

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.saturation`."""
    clipped = (action < self._low) | (action > self._high)
    flat = tf.reshape(clipped, [-1, self._actions])
    return tf.reduce_mean(tf.cast(flat, tf.float32), -1)


class SquashedGaussian(Gaussian):
  """Hyperbolic tangents of normal variables (Haarnoja et al. 2018).

  Parameters are means and log stds of the normal distributions. `mode` returns
  the median, because the density can have two modes.

  Args:
    space: Box of actions, bounded everywhere.
    config: Initial value and kind of the std.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network):
    super().__init__(space, config)
    # Means that are squashed twice would not reach the bounds.
    self._mean_activation = "linear"

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.TransformedDistribution(
        super().distribution(parameters), tfb.Tanh())

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.entropy`."""
    log_det = self._expectation(tfb.Tanh().forward_log_det_jacobian, parameters)
    return super().distribution(parameters).entropy() + tf.reduce_sum(
        log_det, -1)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    mean = self._expectation(tf.tanh, parameters)[..., None]
    variance = self._expectation(
        lambda x: tf.square(tf.tanh(x) - mean), parameters)
    return tf.reduce_mean(tf.sqrt(variance), -1)

  def _expectation(self, function: Callable[[tf.Tensor], tf.Tensor],
                   parameters: tf.Tensor) -> tf.Tensor:
    """Returns expectations under the normals by Gauss-Hermite quadrature."""
    mean, log_std = tf.split(parameters[..., None], 2, -2)
    points = mean + tf.exp(log_std) * _POINTS.astype(np.float32)
    return tf.reduce_sum(function(points) * _WEIGHTS.astype(np.float32), -1)

  def _to_action(self, flat: tf.Tensor) -> tf.Tensor:
    return _clip(tf.tanh(super()._to_action(flat)))


class Beta(action_distribution.ActionDistribution):
  """Beta distributions, stretched to [-1, 1] (Chou et al. 2017).

  Each dimension has two parameters. Their `1 + softplus` are the concentrations
  at the upper and the lower bound, so the density has a single mode.

  Args:
    space: Box of actions, bounded everywhere.
    config: Initial std; at most 0.48, the std for outputs of zero.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network):
    concentration = (config.init_std ** -2 - 1) / 2
    excess = max(concentration - 1, math.log(2))
    self._parameters = 2 * math.prod(space.shape)
    super().__init__(
        space.shape, np.full(
            self._parameters, excess + math.log(-math.expm1(-excess))),
        np.zeros(0), *((kind, _TRIES * self._parameters)
                       for kind in ("normal", "exponential")))

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.TransformedDistribution(
        tfd.Independent(self._unstretched(parameters), 1),
        tfb.Chain([tfb.Shift(-1.0), tfb.Scale(2.0)]))

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    upper, lower = tf.split(tf.nn.softplus(parameters), 2, -1)
    return self._to_action(_clip(
        tf.math.divide_no_nan(upper - lower, upper + lower)))

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    normal, exponential = (
        tf.reshape(part, [-1, self._parameters, _TRIES])
        for part in tf.split(noise, 2, -1))
    gamma = _gamma(1 + tf.nn.softplus(parameters), normal, exponential)
    upper, lower = tf.split(gamma, 2, -1)
    return self._to_action(_clip((upper - lower) / (upper + lower)))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    return tf.reduce_mean(2 * self._unstretched(parameters).stddev(), -1)

  def _unstretched(self, parameters: tf.Tensor) -> Any:
    upper, lower = tf.split(1 + tf.nn.softplus(parameters), 2, -1)
    return tfd.Beta(upper, lower)


def _clip(action: tf.Tensor) -> tf.Tensor:
  return tf.clip_by_value(action, -_MAX_ACTION, _MAX_ACTION)


def _gamma(concentration: tf.Tensor, normal: tf.Tensor,
           exponential: tf.Tensor) -> tf.Tensor:
  """Returns gamma variables by rejection sampling (Marsaglia and Tsang 2000).

  Args:
    concentration: Tensor of shape [...], at least 1.
    normal, exponential: Random numbers of shape [..., tries].
  """
  scale = concentration[..., None] - 1 / 3
  root = 1 + normal / tf.sqrt(9 * scale)
  cube = tf.maximum(root, 1e-6) ** 3
  accepted = (root > 0) & (-exponential < 0.5 * tf.square(normal)
                           + scale * (1 - cube + tf.math.log(cube)))
  # If all tries are rejected, with a probability of at most 6e-6, the result
  # is the mode.
  result = tf.ones_like(concentration)
  for index in range(_TRIES):
    result = tf.where(accepted[..., index], cube[..., index], result)
  return scale[..., 0] * result
