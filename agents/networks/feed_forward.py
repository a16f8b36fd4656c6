"""Fully connected networks for policies and values."""

from __future__ import annotations

import math

import keras
import tensorflow as tf

from agents import config as config_lib


class FeedForward(keras.Model):
  """Hidden layers and an output layer.

  Args:
    layers: Units of each hidden layer.
    outputs: Units of the output layer.
    config: Activation and initializer of the hidden layers.
    output_initializer: Of the output layer's weights.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
    output_activation: Of the output layer.
  """

  def __init__(self, layers: tuple[int, ...], outputs: int,
               config: config_lib.Network,
               output_initializer: keras.initializers.Initializer, seed: int,
               name: str, output_activation: str = "linear"):
    super().__init__(name=name)
    self._layers_in_order = [
        keras.layers.Dense(
            units, config.activation, name=f"hidden_{index}",
            kernel_initializer=_hidden(config.initializer, seed + index))
        for index, units in enumerate(layers)]
    self._layers_in_order.append(keras.layers.Dense(
        outputs, output_activation, name="output",
        kernel_initializer=output_initializer))

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Map features of shape [N, D] to [N, outputs]."""
    for layer in self._layers_in_order:
      features = layer(features)
    return features


class _GaussianPolicy(FeedForward):
  """Means from the state, a standard deviation that is the same for all."""

  def __init__(self, actions: int, config: config_lib.Network, seed: int):
    super().__init__(
        config.policy_layers, actions, config, _policy_output(config, seed),
        seed, "policy", config.mean_activation)
    self._log_std = self.add_weight(
        shape=(actions,), name="log_std",
        initializer=keras.initializers.Constant(math.log(config.init_std)))

  def call(self, features: tf.Tensor) -> tf.Tensor:
    mean = super().call(features)
    return tf.concat([mean, tf.zeros_like(mean) + self._log_std], -1)


def feed_forward_gaussian(actions: int, config: config_lib.Network, seed: int
                          ) -> keras.Model:
  """Policy network with the parameters of `heads.Gaussian`.

  Args:
    actions: Dimensions of the action, A.
    config: Layers, activations and initial weights.
    seed: Seed of the initial weights.
  Returns:
    Model from features [N, D] to means and log stds [N, 2 * A].
  """
  return _GaussianPolicy(actions, config, seed)


def feed_forward_categorical(actions: int, config: config_lib.Network,
                             seed: int) -> keras.Model:
  """Policy network with the parameters of `heads.Categorical`.

  Args:
    actions: Number of choices, A.
    config: Layers, activations and initial weights.
    seed: Seed of the initial weights.
  Returns:
    Model from features [N, D] to logits [N, A].
  """
  return FeedForward(config.policy_layers, actions, config,
                     _policy_output(config, seed), seed, "policy")


def feed_forward_value(config: config_lib.Network, seed: int) -> keras.Model:
  """Value network, from features [N, D] to values [N, 1]."""
  seed_of_output = seed + len(config.value_layers)
  if config.initializer == "glorot":
    output = keras.initializers.GlorotUniform(seed_of_output)
  else:
    output = keras.initializers.Orthogonal(1.0, seed=seed_of_output)
  return FeedForward(config.value_layers, 1, config, output, seed, "value")


def _hidden(initializer: str, seed: int) -> keras.initializers.Initializer:
  """Orthogonal (Saxe et al. 2014), or uniform (Glorot and Bengio 2010)."""
  if initializer == "glorot":
    return keras.initializers.GlorotUniform(seed)
  return keras.initializers.Orthogonal(2 ** 0.5, seed=seed)


def _policy_output(config: config_lib.Network, seed: int
                   ) -> keras.initializers.Initializer:
  """Small weights, so that actions begin near the middle of their range."""
  seed += len(config.policy_layers)
  factor = config.init_output_factor
  if config.initializer == "glorot":
    return keras.initializers.VarianceScaling(
        factor, "fan_in", "truncated_normal", seed)
  return keras.initializers.Orthogonal(factor, seed=seed)
