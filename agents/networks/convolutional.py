"""Convolutional networks, from images to features."""

from __future__ import annotations

import keras
import tensorflow as tf

from agents import config as config_lib
from agents.networks import feed_forward

_SMALLEST = 36  # Pixels from which each layer of Nature has a whole kernel.


class Nature(keras.Model):
  """Three convolutions and a dense layer (Mnih et al. 2015).

  Args:
    config: Initializer of all layers.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """

  units = 512

  def __init__(self, config: config_lib.Network, seed: int, name: str):
    super().__init__(name=name)
    self._stack = [
        keras.layers.Conv2D(
            filters, size, strides, activation="relu", name=f"conv_{index}",
            kernel_initializer=feed_forward.hidden(
                config.initializer, seed + index))
        for index, (filters, size, strides) in enumerate([
            (32, 8, 4), (64, 4, 2), (64, 3, 1)])]
    self._dense = _dense(self.units, config, seed + 3)

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """Map images of shape [N, H, W, C], in [0, 1], to [N, units]."""
    if min(images.shape[1:3]) < _SMALLEST:
      raise config_lib.ConfigError(
          f"`network.conv` can be 'nature' only for images of {_SMALLEST} x "
          f"{_SMALLEST} pixels or more; set it to 'impala'. Received: "
          f"{images.shape[1]} x {images.shape[2]}.")
    for layer in self._stack:
      images = layer(images)
    return self._dense(_flat(images))


class Impala(keras.Model):
  """Fifteen convolutions, most of them residual (Espeholt et al. 2018).

  Args:
    config: Initializer of all layers.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """

  units = 256

  def __init__(self, config: config_lib.Network, seed: int, name: str):
    super().__init__(name=name)
    self._stages = [
        [keras.layers.Conv2D(
            filters, 3, padding="same", name=f"conv_{stage}_{index}",
            kernel_initializer=feed_forward.hidden(
                config.initializer, seed + 5 * stage + index))
         for index in range(5)]
        for stage, filters in enumerate([16, 32, 32])]
    self._pool = keras.layers.MaxPooling2D(3, 2, "same", name="pool")
    self._dense = _dense(self.units, config, seed + 15)

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """Map images of shape [N, H, W, C], in [0, 1], to [N, units]."""
    for first, *pairs in self._stages:
      images = self._pool(first(images))
      for one, other in (pairs[:2], pairs[2:]):
        images += other(tf.nn.relu(one(tf.nn.relu(images))))
    return self._dense(_flat(tf.nn.relu(images)))


def make(kind: str, config: config_lib.Network, seed: int, name: str
         ) -> Nature | Impala:
  """Return the network that `config.Network.conv` names.

  Args:
    kind: "nature" or "impala".
    config: Initializer of all layers.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """
  return {"nature": Nature, "impala": Impala}[kind](config, seed, name)


def _dense(units: int, config: config_lib.Network, seed: int
           ) -> keras.layers.Layer:
  return keras.layers.Dense(
      units, "relu", name="dense",
      kernel_initializer=feed_forward.hidden(config.initializer, seed))


def _flat(images: tf.Tensor) -> tf.Tensor:
  return tf.reshape(images, [-1, images.shape[1] * images.shape[2]
                             * images.shape[3]])
