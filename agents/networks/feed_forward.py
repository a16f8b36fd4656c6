"""Fully connected networks for policies and values."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from agents import class_loader
from agents import config as config_lib
from agents.networks import action_distribution


class FeedForward(keras.Model):
  """Hidden layers and an output layer.

  Args:
    layers: Units of each hidden layer, where these are our own.
    config: Kind, activation and initializer of the hidden layers.
    output_initializer: Of the output layer's weights.
    output_bias: The output layer's initial bias, one for each unit.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """

  def __init__(self, layers: tuple[int, ...], config: config_lib.Network,
               output_initializer: keras.initializers.Initializer,
               output_bias: np.ndarray, seed: int, name: str):
    super().__init__(name=name)
    if config.hidden == "dense":
      self._layers_in_order = [
          keras.layers.Dense(
              units, config.activation, name=f"hidden_{index}",
              kernel_initializer=hidden(config.initializer, seed + index))
          for index, units in enumerate(layers)]
    else:
      self._layers_in_order = [own_hidden(config)(
          seed=seed, name="hidden", **config.hidden_kwargs)]
    self._layers_in_order.append(keras.layers.Dense(
        output_bias.size, name="output",
        kernel_initializer=output_initializer,
        bias_initializer=keras.initializers.Constant(output_bias)))

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Map features of shape [N, D] to [N, outputs]."""
    for layer in self._layers_in_order:
      features = layer(features)
    return features


class Policy(FeedForward):
  """From features [N, D] to the parameters [N, head.size] of a head.

  Args:
    head: Distribution over actions.
    config: Layers, activation and initial weights.
    seed: Seed of the initial weights.
  """

  def __init__(self, head: action_distribution.ActionDistribution, config: config_lib.Network,
               seed: int):
    super().__init__(
        config.policy_layers, config, policy_output(config, seed),
        head.initial_outputs, seed, "policy")
    self.head = head
    self._free = tf.zeros([0])
    if head.initial_free.size:
      self._free = self.add_weight(
          shape=head.initial_free.shape, name="log_std",
          initializer=keras.initializers.Constant(head.initial_free))

  def call(self, features: tf.Tensor) -> tf.Tensor:
    return self.head.parameters(super().call(features), self._free)


def feed_forward_value(config: config_lib.Network, seed: int) -> keras.Model:
  """Value network, from features [N, D] to values [N, 1]."""
  seed_of_output = seed + len(config.value_layers)
  if config.initializer == "glorot":
    output = keras.initializers.GlorotUniform(seed_of_output)
  else:
    output = keras.initializers.Orthogonal(1.0, seed=seed_of_output)
  return FeedForward(
      config.value_layers, config, output, np.zeros(1), seed, "value")


def own_hidden(config: config_lib.Network) -> type[keras.Model]:
  """Return the user's class of hidden layers.

  Raises:
    ConfigError: If there is none, or it does not take its arguments.
  """
  return class_loader.find_class(
      "network.hidden", config.hidden, keras.Model,
      arguments=["seed", "name", *config.hidden_kwargs])


def hidden(initializer: str, seed: int) -> keras.initializers.Initializer:
  """Orthogonal (Saxe et al. 2014), or uniform (Glorot and Bengio 2010)."""
  if initializer == "glorot":
    return keras.initializers.GlorotUniform(seed)
  return keras.initializers.Orthogonal(2 ** 0.5, seed=seed)


def policy_output(config: config_lib.Network, seed: int
                   ) -> keras.initializers.Initializer:
  """Small weights, so that actions begin near the middle of their range."""
  seed += len(config.policy_layers)
  factor = config.init_output_factor
  if config.initializer == "glorot":
    return keras.initializers.VarianceScaling(
        factor, "fan_in", "truncated_normal", seed)
  return keras.initializers.Orthogonal(factor, seed=seed)
