"""Distributions over the actions of a Box space.

In each bounded dimension, agents act in [-1, 1], and the environment maps this
range to the bounds of the space.
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

# Actions closer to -1 or 1 can have infinite log densities in float32.
_MAX_ACTION = 1 - 2.0**-23
# Gauss-Hermite quadrature for expectations under normal distributions. With 20
# points, the entropy of a squashed Gaussian has an error of 2e-3 nats at a std
# of 2, and of 3e-6 nats at a std of 1.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS /= math.sqrt(2 * math.pi)
_TRIES = 4  # Per gamma variable; each fails with a probability below 1 / 20.


class Gaussian(action_distribution.ActionDistribution):
  """Independent normal distributions; parameters are means and log stds.

  Args:
    space: Box of actions.
    config: Activation of the mean, initial std, and whether the std depends on
      the state.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network) -> None:
    # The environment maps [-1, 1] to finite bounds, and clips other actions.
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    self._low = np.where(bounded, -1, space.low)
    self._high = np.where(bounded, 1, space.high)
    self._mean_activation = config.mean_activation
    self._num_dims = math.prod(space.shape)
    means = np.zeros(self._num_dims)
    log_stds = np.full(self._num_dims, math.log(config.init_std))
    outputs, free = means, log_stds
    if config.state_dependent_std:
      outputs, free = np.concatenate([means, log_stds]), np.zeros(0)
    super().__init__(space.shape, outputs, free, ("normal", self._num_dims))

  def parameters(self, outputs: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.parameters`."""
    # --8<-- [start:gaussian]
    mean, log_std = outputs, free
    if not self.initial_free.size:
      mean, log_std = tf.split(outputs, 2, -1)
    if self._mean_activation == "tanh":
      mean = tf.tanh(mean)
    return tf.concat([mean, tf.zeros_like(mean) + log_std], -1)
    # --8<-- [end:gaussian]

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
    flat = tf.reshape(clipped, [-1, self._num_dims])
    return tf.reduce_mean(tf.cast(flat, tf.float32), -1)


class SquashedGaussian(Gaussian):
  """Hyperbolic tangents of normal variables (Haarnoja et al. 2018).

  Parameters are means and log stds of the normal distributions. `mode` returns
  the median, because the density can have two modes.

  Args:
    space: Box of actions, bounded everywhere.
    config: Initial std, and whether the std depends on the state.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network) -> None:
    super().__init__(space, config)
    # With a second tanh, the mode could not leave [-0.77, 0.77].
    self._mean_activation = "linear"

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.TransformedDistribution(super().distribution(parameters), tfb.Tanh())

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.entropy`."""
    log_det = self._expectation(tfb.Tanh().forward_log_det_jacobian, parameters)
    return super().distribution(parameters).entropy() + tf.reduce_sum(log_det, -1)

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    mean = self._expectation(tf.tanh, parameters)[..., None]
    variance = self._expectation(lambda x: tf.square(tf.tanh(x) - mean), parameters)
    return tf.reduce_mean(tf.sqrt(variance), -1)

  def _expectation(
    self, function: Callable[[tf.Tensor], tf.Tensor], parameters: tf.Tensor
  ) -> tf.Tensor:
    """Returns means of `function` under the normals by quadrature, [..., A]."""
    mean, log_std = tf.split(parameters[..., None], 2, -2)
    points = mean + tf.exp(log_std) * _POINTS.astype(np.float32)
    return tf.reduce_sum(function(points) * _WEIGHTS.astype(np.float32), -1)

  def _to_action(self, flat: tf.Tensor) -> tf.Tensor:
    return _clip(tf.tanh(super()._to_action(flat)))


class Beta(action_distribution.ActionDistribution):
  """Beta distributions, stretched to [-1, 1] (Chou et al. 2017).

  Each action dimension has two parameters p. The values of `1 + softplus(p)`
  are the concentrations at the upper and the lower bound. Both exceed 1, so the
  density has a single mode.

  Args:
    space: Box of actions, bounded everywhere.
    config: Initial std; values above 0.48 have the effect of 0.48, the std for
      network outputs of zero.
  """

  def __init__(self, space: gymnasium.spaces.Box, config: config_lib.Network) -> None:
    concentration = (config.init_std**-2 - 1) / 2
    excess = max(concentration - 1, math.log(2))
    self._num_parameters = 2 * math.prod(space.shape)
    super().__init__(
      space.shape,
      np.full(self._num_parameters, excess + math.log(-math.expm1(-excess))),
      np.zeros(0),
      *((kind, _TRIES * self._num_parameters) for kind in ("normal", "exponential")),
    )

  def distribution(self, parameters: tf.Tensor) -> Any:
    """See `ActionDistribution.distribution`."""
    return tfd.TransformedDistribution(
      tfd.Independent(self._unstretched(parameters), 1),
      tfb.Chain([tfb.Shift(-1.0), tfb.Scale(2.0)]),
    )

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    upper, lower = tf.split(tf.nn.softplus(parameters), 2, -1)
    return self._to_action(_clip(tf.math.divide_no_nan(upper - lower, upper + lower)))

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    normal, exponential = (
      tf.reshape(part, [-1, self._num_parameters, _TRIES]) for part in tf.split(noise, 2, -1)
    )
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


def _gamma(concentration: tf.Tensor, normal: tf.Tensor, exponential: tf.Tensor) -> tf.Tensor:
  """Returns gamma variables by rejection sampling (Marsaglia and Tsang 2000).

  Args:
    concentration: Tensor of shape [...], at least 1.
    normal: Samples of the standard normal distribution, [..., _TRIES].
    exponential: Samples of the exponential distribution, [..., _TRIES].
  """
  scale = concentration[..., None] - 1 / 3
  root = 1 + normal / tf.sqrt(9 * scale)
  cube = tf.maximum(root, 1e-6) ** 3
  accepted = (root > 0) & (
    -exponential < 0.5 * tf.square(normal) + scale * (1 - cube + tf.math.log(cube))
  )
  # All tries fail with a probability below 7e-6. The result is then
  # `concentration - 1 / 3`, close to the median.
  result = tf.ones_like(concentration)
  for index in range(_TRIES):
    result = tf.where(accepted[..., index], cube[..., index], result)
  return scale[..., 0] * result
