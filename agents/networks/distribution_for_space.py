"""Creates the action distribution for any supported space."""

import gymnasium
import numpy as np
import tensorflow as tf
from gymnasium import spaces as gym

from agents import config as config_lib
from agents import spaces
from agents.networks import action_distribution, continuous, discrete
from agents.ops import random, tensor_bytes

_BOX_DISTRIBUTIONS = {
  "gaussian": continuous.Gaussian,
  "squashed_gaussian": continuous.SquashedGaussian,
  "beta": continuous.Beta,
}


class Product(action_distribution.ActionDistribution):
  """Independent distributions over the simple spaces in a composite space.

  Each action is a vector of bytes, see `tensor_bytes.pack`.

  Args:
    space: Dict or Tuple space.
    config: Kind and initial parameters of the distributions over Box spaces.
  """

  def __init__(self, space: gymnasium.Space, config: config_lib.Network) -> None:
    self._leaves = spaces.leaves(space, is_action=True)
    self._factors = [make(leaf.space, config) for leaf in self._leaves]
    super().__init__(
      (sum(leaf.num_bytes for leaf in self._leaves),),
      np.concatenate([factor.initial_outputs for factor in self._factors]),
      np.concatenate([factor.initial_free for factor in self._factors]),
      *(kind for factor in self._factors for kind in factor.noise_kinds),
    )

  def parameters(self, outputs: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.parameters`."""
    outputs = tf.split(outputs, [factor.initial_outputs.size for factor in self._factors], -1)
    free = tf.split(free, [factor.initial_free.size for factor in self._factors])
    return tf.concat(
      [factor.parameters(*arguments) for factor, *arguments in zip(self._factors, outputs, free)],
      -1,
    )

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.mode`."""
    return tensor_bytes.pack([factor.mode(part) for factor, part in self._split(parameters)])

  def noise(self, num_actions: int, key: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.noise`."""
    keys = tf.unstack(random.split(key, len(self._factors)))
    return tf.concat(
      [factor.noise(num_actions, factor_key) for factor, factor_key in zip(self._factors, keys)], -1
    )

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.sample`."""
    noises = tf.split(noise, [factor.noise_size for factor in self._factors], -1)
    return tensor_bytes.pack(
      [factor.sample(part, noise) for (factor, part), noise in zip(self._split(parameters), noises)]
    )

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.log_prob`."""
    actions = tensor_bytes.unpack(action, self._leaves)
    return tf.add_n(
      [
        factor.log_prob(part, action)
        for (factor, part), action in zip(self._split(parameters), actions)
      ]
    )

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.entropy`."""
    return tf.add_n([factor.entropy(part) for factor, part in self._split(parameters)])

  def kl(self, parameters: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.kl`."""
    return tf.add_n(
      [
        factor.kl(first, second)
        for (factor, first), (_, second) in zip(self._split(parameters), self._split(other))
      ]
    )

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.std`."""
    return tf.add_n([factor.std(part) for factor, part in self._split(parameters)]) / len(
      self._factors
    )

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    """See `ActionDistribution.saturation`."""
    actions = tensor_bytes.unpack(action, self._leaves)
    return tf.add_n(
      [factor.saturation(part) for factor, part in zip(self._factors, actions)]
    ) / len(self._factors)

  def _split(
    self, parameters: tf.Tensor
  ) -> list[tuple[action_distribution.ActionDistribution, tf.Tensor]]:
    """Returns pairs of a factor and its parameters."""
    sizes = [factor.size for factor in self._factors]
    return list(zip(self._factors, tf.split(parameters, sizes, -1)))


def make(
  space: gymnasium.Space, config: config_lib.Network | None = None
) -> action_distribution.ActionDistribution:
  """Returns the distribution for an action space.

  Args:
    space: Space that `spaces.dtype` supports.
    config: Kind and initial parameters of distributions over Box spaces; None
      for the defaults.

  Raises:
    ConfigError: If the distribution needs bounds and the space has none.
  """
  config = config or config_lib.Network()
  if spaces.composite(space):
    return Product(space, config)
  if isinstance(space, gym.Discrete):
    return discrete.Categorical(np.asarray(space.n))
  if isinstance(space, gym.MultiDiscrete):
    return discrete.Categorical(space.nvec)
  if isinstance(space, gym.MultiBinary):
    return discrete.Bernoulli(space)
  assert isinstance(space, gym.Box)
  kind = config.action_distribution
  if kind != "gaussian" and not space.is_bounded():
    raise config_lib.ConfigError(
      f"`network.action_distribution` can be '{kind}' only for a bounded "
      f"action space; set it to 'gaussian', or bound the space. Received: "
      f"{space}."
    )
  return _BOX_DISTRIBUTIONS[kind](space, config)
