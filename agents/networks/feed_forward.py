"""Fully connected networks for policies and values."""

from __future__ import annotations

import math

import keras
import tensorflow as tf

_HIDDEN_GAIN = 2 ** 0.5
_POLICY_GAIN = 0.01  # Begins near the middle of the actions' range.


def _orthogonal(gain: float, seed: int) -> keras.initializers.Initializer:
  return keras.initializers.Orthogonal(gain, seed=seed)


class FeedForward(keras.Model):
  """Tanh layers and a linear one, initialized orthogonally.

  Args:
    layers: Units of each hidden layer.
    outputs: Units of the last layer.
    gain: Scale of the last layer's initial weights.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """

  def __init__(self, layers: tuple[int, ...], outputs: int, gain: float,
               seed: int, name: str):
    super().__init__(name=name)
    self._layers_in_order = [
        keras.layers.Dense(
            units, "tanh", name=f"hidden_{index}",
            kernel_initializer=_orthogonal(_HIDDEN_GAIN, seed + index))
        for index, units in enumerate(layers)]
    self._layers_in_order.append(keras.layers.Dense(
        outputs, name="output",
        kernel_initializer=_orthogonal(gain, seed + len(layers))))

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Map features of shape [N, D] to [N, outputs]."""
    for layer in self._layers_in_order:
      features = layer(features)
    return features


class _GaussianPolicy(FeedForward):
  """Means from the state, a standard deviation that is the same for all."""

  def __init__(self, layers: tuple[int, ...], actions: int, init_std: float,
               seed: int, name: str):
    super().__init__(layers, actions, _POLICY_GAIN, seed, name)
    self._log_std = self.add_weight(
        shape=(actions,), name="log_std",
        initializer=keras.initializers.Constant(math.log(init_std)))

  def call(self, features: tf.Tensor) -> tf.Tensor:
    mean = super().call(features)
    return tf.concat([mean, tf.zeros_like(mean) + self._log_std], -1)


def feed_forward_gaussian(layers: tuple[int, ...], actions: int,
                          init_std: float, seed: int) -> keras.Model:
  """Policy network with the parameters of `heads.Gaussian`.

  Args:
    layers: Units of each hidden layer.
    actions: Dimensions of the action, A.
    init_std: Initial standard deviation, where actions span [-1, 1].
    seed: Seed of the initial weights.
  Returns:
    Model from features [N, D] to means and log stds [N, 2 * A].
  """
  return _GaussianPolicy(layers, actions, init_std, seed, "policy")


def feed_forward_categorical(layers: tuple[int, ...], actions: int, seed: int
                             ) -> keras.Model:
  """Policy network with the parameters of `heads.Categorical`.

  Args:
    layers: Units of each hidden layer.
    actions: Number of choices, A.
    seed: Seed of the initial weights.
  Returns:
    Model from features [N, D] to logits [N, A].
  """
  return FeedForward(layers, actions, _POLICY_GAIN, seed, "policy")


def feed_forward_value(layers: tuple[int, ...], seed: int) -> keras.Model:
  """Value network, from features [N, D] to values [N, 1]."""
  return FeedForward(layers, 1, 1.0, seed, "value")
