"""Convolutional networks that map images to features."""

import math
from typing import Any

import keras
import tensorflow as tf

from agents import config as config_lib
from agents.networks import feed_forward

_MIN_SIDE = 36  # Pixels; in smaller images, the third kernel does not fit.


class _Conv(keras.layers.Conv2D):
  """Computes a convolution without padding as one matrix product.

  On a CPU, XLA's own convolutions and their gradients take about four times as
  long. The side of the square kernel must be a multiple of the stride.
  """

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """Maps images of shape [N, H, W, C] to [N, H', W', filters]."""
    stride, channels = self.strides[0], images.shape[-1]
    size = self.kernel_size[0]
    span = size // stride
    rows, columns = ((pixels - size) // stride + 1 for pixels in images.shape[1:3])
    # A kernel covers span x span blocks of stride x stride pixels.
    height, width = rows + span - 1, columns + span - 1
    blocks = tf.reshape(
      images[:, : height * stride, : width * stride], [-1, height, stride, width, stride, channels]
    )
    blocks = tf.reshape(
      tf.transpose(blocks, [0, 1, 3, 2, 4, 5]), [-1, height, width, stride * stride * channels]
    )
    windows = tf.concat(
      [
        blocks[:, row : row + rows, column : column + columns]
        for row in range(span)
        for column in range(span)
      ],
      -1,
    )
    kernel = tf.transpose(
      tf.reshape(self.kernel, [span, stride, span, stride, channels, -1]), [0, 2, 1, 3, 4, 5]
    )
    result = tf.matmul(
      tf.reshape(windows, [-1, windows.shape[-1]]),
      tf.reshape(kernel, [windows.shape[-1], self.filters]),
    )
    return tf.reshape(result + self.bias, [-1, rows, columns, self.filters])


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
      _layer(_Conv, f"conv_{index}", config, seed + index, *sizes)
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
        _layer(_Conv, f"conv_{stage}_{index}", config, seed + 5 * stage + index, filters, 3)
        for index in range(5)
      ]
      for stage, filters in enumerate([16, 32, 32])
    ]
    self._pool = keras.layers.MaxPooling2D(3, 2, "same", name="pool")
    self._dense = _layer(keras.layers.Dense, "dense", config, seed + 15, self.units, "relu")

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """Maps images of shape [N, H, W, C], in [0, 1], to [N, units]."""
    for first, *pairs in self._stages:
      images = self._pool(first(_padded(images)))
      for conv_a, conv_b in (pairs[:2], pairs[2:]):
        inner = conv_a(_padded(tf.nn.relu(images)))
        images += conv_b(_padded(tf.nn.relu(inner)))
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


def _padded(images: tf.Tensor) -> tf.Tensor:
  return tf.pad(images, [[0, 0], [1, 1], [1, 1], [0, 0]])


def _flat(images: tf.Tensor) -> tf.Tensor:
  return tf.reshape(images, [-1, math.prod(images.shape[1:])])
