"""The distribution over actions of any supported space."""

from __future__ import annotations

import gymnasium
import numpy as np
import tensorflow as tf
from gymnasium import spaces as gym

from agents import config as config_lib
from agents import spaces
from agents.networks import action_distribution
from agents.networks import continuous
from agents.networks import discrete
from agents.ops import packing
from agents.ops import random

ActionDistribution = action_distribution.ActionDistribution

_OF_BOXES = {
    "gaussian": continuous.Gaussian,
    "squashed_gaussian": continuous.SquashedGaussian,
    "beta": continuous.Beta}


class Product(action_distribution.ActionDistribution):
  """Independent distributions over the parts of actions, which are bytes.

  Args:
    space: Dict or Tuple of actions.
    config: What the distributions are.
  """

  def __init__(self, space: gymnasium.Space, config: config_lib.Network):
    self._leaves = spaces.leaves(space, acting=True)
    self._heads = [make(leaf.space, config) for leaf in self._leaves]
    super().__init__(
        (sum(leaf.num_bytes for leaf in self._leaves),),
        np.concatenate([part.initial_outputs for part in self._heads]),
        np.concatenate([part.initial_free for part in self._heads]),
        sum(part.noise_size for part in self._heads))

  @property
  def noise_kinds(self) -> tuple[tuple[str, int], ...]:
    return tuple(kind for part in self._heads for kind in part.noise_kinds)

  def parameters(self, outputs: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    outputs = tf.split(
        outputs, [part.initial_outputs.size for part in self._heads], -1)
    free = tf.split(free, [part.initial_free.size for part in self._heads])
    return tf.concat([
        part.parameters(*arguments)
        for part, *arguments in zip(self._heads, outputs, free)], -1)

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    return packing.pack([
        part.mode(own) for part, own in self._each(parameters)])

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    keys = tf.unstack(random.split(key, len(self._heads)))
    return tf.concat([part.noise(amount, own) for part, own in zip(
        self._heads, keys)], -1)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    noises = tf.split(noise, [part.noise_size for part in self._heads], -1)
    return packing.pack([
        part.sample(own, noise)
        for (part, own), noise in zip(self._each(parameters), noises)])

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    actions = packing.unpack(action, self._leaves)
    return tf.add_n([
        part.log_prob(own, action)
        for (part, own), action in zip(self._each(parameters), actions)])

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    return tf.add_n([
        part.entropy(own) for part, own in self._each(parameters)])

  def kl(self, parameters: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    return tf.add_n([
        part.kl(first, second) for (part, first), (_, second) in zip(
            self._each(parameters), self._each(other))])

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    return tf.add_n([part.std(own) for part, own in self._each(parameters)]
                    ) / len(self._heads)

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    actions = packing.unpack(action, self._leaves)
    return tf.add_n([part.saturation(own) for part, own in zip(
        self._heads, actions)]) / len(self._heads)

  def _each(self, parameters: tf.Tensor) -> list[tuple[ActionDistribution, tf.Tensor]]:
    """Return every part with its own parameters."""
    sizes = [part.size for part in self._heads]
    return list(zip(self._heads, tf.split(parameters, sizes, -1)))


def make(space: gymnasium.Space, config: config_lib.Network | None = None
         ) -> ActionDistribution:
  """Return the head for an action space.

  Args:
    space: That `spaces.dtype` supports.
    config: What the distributions over numbers are; None for the default.
  Raises:
    ConfigError: If such distributions need bounds that the space has not.
  """
  config = config or config_lib.Network()
  if spaces.composite(space):
    return Product(space, config)
  if isinstance(space, gym.Discrete):
    return discrete.Categorical(space)
  if isinstance(space, gym.MultiDiscrete):
    return discrete.MultiCategorical(space)
  if isinstance(space, gym.MultiBinary):
    return discrete.Bernoulli(space)
  assert isinstance(space, gym.Box)
  kind = config.action_distribution
  if kind != "gaussian" and not space.is_bounded():
    raise config_lib.ConfigError(
        f"`network.action_distribution` can be '{kind}' only if all actions "
        f"are bounded, and {space} is not; set it to 'gaussian', or bound the "
        "space.")
  return _OF_BOXES[kind](space, config)
