"""Fully connected networks for policies and values."""

import keras
import numpy as np
import tensorflow as tf

from agents import class_loader
from agents import config as config_lib
from agents.networks import action_distribution


class FeedForward(keras.Model):
  """Hidden layers and an output layer.

  Args:
    layers: Units of each hidden layer; ignored if `config.hidden` names a
      custom class.
    config: Kind, activation and initializer of the hidden layers.
    output_initializer: Initializer of the output layer's kernel.
    output_bias: Initial bias of the output layer, of shape [outputs].
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """

  def __init__(
    self,
    layers: tuple[int, ...],
    config: config_lib.Network,
    output_initializer: keras.initializers.Initializer,
    output_bias: np.ndarray,
    seed: int,
    name: str,
  ) -> None:
    super().__init__(name=name)
    if config.hidden == "dense":
      self._layers_in_order = [
        keras.layers.Dense(
          units,
          config.activation,
          name=f"hidden_{index}",
          kernel_initializer=hidden_initializer(config.initializer, seed + index),
        )
        for index, units in enumerate(layers)
      ]
    else:
      self._layers_in_order = [
        custom_hidden(config)(seed=seed, name="hidden", **config.hidden_kwargs)
      ]
    self._layers_in_order.append(
      keras.layers.Dense(
        output_bias.size,
        name="output",
        kernel_initializer=output_initializer,
        bias_initializer=keras.initializers.Constant(output_bias),
      )
    )

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Maps features of shape [N, D] to [N, outputs]."""
    for layer in self._layers_in_order:
      features = layer(features)
    return features


class Policy(FeedForward):
  """Maps features [N, D] to parameters of a distribution, [N, P].

  Args:
    distribution: Distribution over actions.
    config: Layers, activation and initial weights.
    seed: Seed of the initial weights.
  """

  def __init__(
    self,
    distribution: action_distribution.ActionDistribution,
    config: config_lib.Network,
    seed: int,
  ) -> None:
    # Initial outputs are small, so the first actions are near the middle of
    # their range.
    factor, output_seed = (config.init_output_factor, seed + len(config.policy_layers))
    output = (
      keras.initializers.VarianceScaling(factor, "fan_in", "truncated_normal", output_seed)
      if config.initializer == "glorot"
      else keras.initializers.Orthogonal(factor, seed=output_seed)
    )
    super().__init__(
      config.policy_layers, config, output, distribution.initial_outputs, seed, "policy"
    )
    self.distribution = distribution
    self._free = tf.zeros([0])
    if distribution.initial_free.size:
      self._free = self.add_weight(
        shape=distribution.initial_free.shape,
        name="log_std",
        initializer=keras.initializers.Constant(distribution.initial_free),
      )

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Maps features of shape [N, D] to parameters of shape [N, P]."""
    return self.distribution.parameters(super().call(features), self._free)


def feed_forward_value(config: config_lib.Network, seed: int) -> keras.Model:
  """Returns a value network that maps features [N, D] to values [N, 1].

  Args:
    config: Layers, activation and initializer.
    seed: Seed of the initial weights.
  """
  output = hidden_initializer(config.initializer, seed + len(config.value_layers), gain=1.0)
  return FeedForward(config.value_layers, config, output, np.zeros(1), seed, "value")


def custom_hidden(config: config_lib.Network) -> type[keras.Model]:
  """Returns the user's class of hidden layers.

  Args:
    config: Name and arguments of the class.

  Raises:
    ConfigError: If the class does not exist or does not accept the arguments.
  """
  return class_loader.find_class(
    "network.hidden", config.hidden, keras.Model, arguments=["seed", "name", *config.hidden_kwargs]
  )


def hidden_initializer(
  initializer: str, seed: int, gain: float = 2**0.5
) -> keras.initializers.Initializer:
  """Returns the initializer of hidden layers.

  Args:
    initializer: "orthogonal" (Saxe et al. 2014) or "glorot" (Glorot and Bengio
      2010).
    seed: Seed of the initial weights.
    gain: Scale of orthogonal weights.
  """
  if initializer == "glorot":
    return keras.initializers.GlorotUniform(seed)
  return keras.initializers.Orthogonal(gain, seed=seed)
