"""Convolutional networks that map images to features."""

import math
from typing import Any

import keras
import tensorflow as tf

from agents import config as config_lib
from agents.networks import feed_forward

_MIN_SIDE = 36  # Pixels; in smaller images, the third kernel does not fit.


class Nature(keras.Model):
  """Three convolutions and a dense layer (Mnih et al. 2015).

  Args:
    config: Initializer of all layers.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """

  units = 512

  def __init__(self, config: config_lib.Network, seed: int, name: str) -> None:
    super().__init__(name=name)
    self._stack = [
      _layer(keras.layers.Conv2D, f"conv_{index}", config, seed + index, *sizes)
      for index, sizes in enumerate([(32, 8, 4), (64, 4, 2), (64, 3, 1)])
    ]
    self._dense = _layer(keras.layers.Dense, "dense", config, seed + 3, self.units, "relu")

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """Maps images of shape [N, H, W, C], in [0, 1], to [N, units].

    Raises:
      ConfigError: If the images are too small.
    """
    if min(images.shape[1:3]) < _MIN_SIDE:
      raise config_lib.ConfigError(
        f"`network.conv` can be 'nature' only for images of {_MIN_SIDE} x "
        f"{_MIN_SIDE} pixels or more; set it to 'impala'. Received: "
        f"{images.shape[1]} x {images.shape[2]}."
      )
    for layer in self._stack:
      images = tf.nn.relu(layer(images))
    return self._dense(_flat(images))


class Impala(keras.Model):
  """Fifteen convolutions, twelve in residual blocks (Espeholt et al. 2018).

  Args:
    config: Initializer of all layers.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """

  units = 256

  def __init__(self, config: config_lib.Network, seed: int, name: str) -> None:
    super().__init__(name=name)
    self._stages = [
      [
        _layer(
          keras.layers.Conv2D,
          f"conv_{stage}_{index}",
          config,
          seed + 5 * stage + index,
          filters,
          3,
          1,
          "same",
        )
        for index in range(5)
      ]
      for stage, filters in enumerate([16, 32, 32])
    ]
    self._pool = keras.layers.MaxPooling2D(3, 2, "same", name="pool")
    self._dense = _layer(keras.layers.Dense, "dense", config, seed + 15, self.units, "relu")

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """Maps images of shape [N, H, W, C], in [0, 1], to [N, units]."""
    for first, *pairs in self._stages:
      images = self._pool(first(images))
      for conv_a, conv_b in (pairs[:2], pairs[2:]):
        inner = conv_a(tf.nn.relu(images))
        images += conv_b(tf.nn.relu(inner))
    return self._dense(_flat(tf.nn.relu(images)))


def make(kind: str, config: config_lib.Network, seed: int, name: str) -> keras.Model:
  """Returns a convolutional network.

  Args:
    kind: "nature" or "impala".
    config: Initializer of all layers.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """
  return (Impala if kind == "impala" else Nature)(config, seed, name)


def _layer(
  kind: type[keras.layers.Layer], name: str, config: config_lib.Network, seed: int, *args: Any
) -> keras.layers.Layer:
  initializer = feed_forward.hidden_initializer(config.initializer, seed)
  return kind(*args, name=name, kernel_initializer=initializer)


def _flat(images: tf.Tensor) -> tf.Tensor:
  return tf.reshape(images, [-1, math.prod(images.shape[1:])])
