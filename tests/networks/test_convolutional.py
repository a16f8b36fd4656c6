"""Compares convolutional networks with NumPy, and checks that they learn."""

import numpy as np
import pytest
import tensorflow as tf

from agents import config as config_lib
from agents.networks import convolutional
from agents.ops import loops
from tests.support import modes

_each_kind = pytest.mark.parametrize(
  "kind, shape", [("nature", (36, 37, 2)), ("impala", (9, 6, 2))]
)


def _network(kind, seed=0, initializer="orthogonal"):
  config = config_lib.Network(initializer=initializer)
  return convolutional.make(kind, config, seed, "policy_conv")


def _images(shape, rows=2, seed=0):
  rng = np.random.default_rng(seed)
  return rng.uniform(size=(rows, *shape)).astype(np.float32)


def _weights(network, shape):
  network(tf.zeros([1, *shape]))
  return {weight.path: weight for weight in network.trainable_variables}


def _relu(x):
  return np.maximum(x, 0)


def _windows(images, size, stride):
  """Returns all windows of images, [N, rows, columns, C, size, size]."""
  windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), (1, 2))
  return windows[:, ::stride, ::stride]


def _pad(images, size, stride, value):
  """Pads like TensorFlow's "same", for outputs of ceil(input / stride)."""
  paddings = []
  for length in images.shape[1:3]:
    total = max((-(-length // stride) - 1) * stride + size - length, 0)
    paddings.append((total // 2, total - total // 2))
  return np.pad(images, [(0, 0), *paddings, (0, 0)], constant_values=value)


class _Layers:
  """Computes the layers of a network with NumPy, in float64."""

  def __init__(self, weights):
    self._weights = {name: weight.numpy().astype(np.float64) for name, weight in weights.items()}

  def conv(self, name, images, stride=1):
    kernel = self._weights[f"policy_conv/{name}/kernel"]
    return (
      np.einsum(
        "nhwcij,ijco->nhwo", _windows(images, kernel.shape[0], stride), kernel, optimize=True
      )
      + self._weights[f"policy_conv/{name}/bias"]
    )

  def same(self, name, images):
    return self.conv(name, _pad(images, 3, 1, 0))

  def dense(self, images):
    return _relu(
      images.reshape(len(images), -1) @ self._weights["policy_conv/dense/kernel"]
      + self._weights["policy_conv/dense/bias"]
    )


def _nature(layers, images):
  for index, stride in enumerate([4, 2, 1]):
    images = _relu(layers.conv(f"conv_{index}", images, stride))
  return layers.dense(images)


def _impala(layers, images):
  for stage in range(3):
    images = layers.same(f"conv_{stage}_0", images)
    images = _windows(_pad(images, 3, 2, -np.inf), 3, 2).max((-2, -1))
    for block in (1, 3):
      inner = layers.same(f"conv_{stage}_{block}", _relu(images))
      images = images + layers.same(f"conv_{stage}_{block + 1}", _relu(inner))
  return layers.dense(_relu(images))


@modes.compiled_slowly
@_each_kind
def test_networks_equal_a_numpy_version_of_the_papers(prepare, kind, shape):
  network = _network(kind)
  weights = _weights(network, shape)
  rng = np.random.default_rng(1)
  for name, weight in weights.items():
    if name.endswith("bias"):  # Initial biases of zero would hide errors.
      weight.assign(0.1 * rng.normal(size=weight.shape))
  expected = {"nature": _nature, "impala": _impala}[kind](
    _Layers(weights), _images(shape).astype(np.float64)
  )
  found = prepare(network)(tf.constant(_images(shape)))
  assert found.shape == (2, network.units)
  np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
  "kind, num_parameters",
  [
    # Kernels and biases for frames of 84 x 84 x 4.
    (
      "nature",
      8 * 8 * 4 * 32 + 4 * 4 * 32 * 64 + 3 * 3 * 64 * 64 + 7 * 7 * 64 * 512 + 32 + 64 + 64 + 512,
    ),
    (
      "impala",
      9 * (4 * 16 + 4 * 16 * 16 + 16 * 32 + 9 * 32 * 32)
      + 11 * 11 * 32 * 256
      + 5 * 16
      + 10 * 32
      + 256,
    ),
  ],
)
def test_number_of_parameters_for_atari_frames(kind, num_parameters):
  weights = _weights(_network(kind), (84, 84, 4)).values()
  assert sum(weight.numpy().size for weight in weights) == num_parameters


@pytest.mark.parametrize(
  "kind, shape, initializer",
  [
    ("nature", (36, 36, 1), "glorot"),
    ("nature", (36, 36, 1), "orthogonal"),
    pytest.param("impala", (9, 6, 2), "orthogonal", marks=pytest.mark.slow),
  ],
)
def test_initial_weights_depend_on_seed_and_initializer(kind, shape, initializer):
  first, again, other = (_weights(_network(kind, seed, initializer), shape) for seed in (0, 0, 1))
  for name, weight in first.items():
    np.testing.assert_array_equal(weight, again[name])
    if name.endswith("bias"):
      np.testing.assert_array_equal(weight, 0)
      continue
    assert (weight.numpy() != other[name].numpy()).any()
    kernel = weight.numpy().reshape(-1, weight.shape[-1])
    if kernel.shape[0] < kernel.shape[1]:
      kernel = kernel.T
    gram = kernel.T @ kernel
    orthogonal = np.abs(gram - 2 * np.eye(len(gram))).max() < 1e-4
    assert orthogonal == (initializer == "orthogonal")
  kernels = [weight.numpy() for name, weight in first.items() if name.endswith("kernel")]
  for one, two in zip(kernels, kernels[1:]):
    assert one.shape != two.shape or (one != two).any()


@pytest.mark.slow
@_each_kind
def test_networks_learn_in_a_compiled_loop(kind, shape):
  # The task is to detect the images whose upper half has been darkened.
  images = _images(shape, 32)
  middle = shape[0] // 2
  labels = images[:, :middle].mean((1, 2, 3)) - images[:, -middle:].mean((1, 2, 3)) > 0
  images[labels, :middle] *= 0.5
  network = _network(kind)
  weights = list(_weights(network, shape).values())

  def loss():
    first, second = tf.split(network(tf.constant(images)), 2, -1)
    error = tf.reduce_mean(second - first, -1) - tf.cast(labels, tf.float32)
    return tf.reduce_mean(tf.square(error))

  @tf.function(jit_compile=True)
  def learn(steps):
    def step(index, unused):
      with tf.GradientTape() as tape:
        error = loss()
      for weight, slope in zip(weights, tape.gradient(error, weights)):
        weight.assign_sub(0.1 * slope)
      return unused

    loops.repeat(steps, step, ())

  before = loss().numpy()
  learn(tf.constant(20))
  assert loss().numpy() < 0.7 * before


def test_error_for_small_images_names_the_solution():
  with pytest.raises(config_lib.ConfigError) as caught:
    _network("nature")(tf.zeros([1, 84, 35, 3]))
  assert "84 x 35" in str(caught.value) and "impala" in str(caught.value)
