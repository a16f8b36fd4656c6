"""Networks against NumPy, and how they begin."""

import numpy as np
import pytest
import tensorflow as tf

from agents.networks import feed_forward
from tests import modes

_INPUTS = 4


def _gaussian(layers=(5, 3), seed=0, init_std=0.6):
  return feed_forward.feed_forward_gaussian(layers, 2, init_std, seed)


def _categorical(layers=(5, 3), seed=0):
  return feed_forward.feed_forward_categorical(layers, 2, seed)


def _value(layers=(5, 3), seed=0):
  return feed_forward.feed_forward_value(layers, seed)


_each_network = pytest.mark.parametrize(
    "make", [_gaussian, _categorical, _value])


def _features(rows=6):
  rng = np.random.default_rng(0)
  return rng.normal(size=(rows, _INPUTS)).astype(np.float32)


def _weights(network):
  network(tf.zeros([1, _INPUTS]))
  return {weight.path: weight for weight in network.trainable_variables}


def _randomized(network):
  """Biases and last layers begin near zero, where they'd show no error."""
  rng = np.random.default_rng(1)
  weights = _weights(network)
  for weight in weights.values():
    weight.assign(rng.normal(size=weight.shape))
  return {name: weight.numpy().astype(np.float64)
          for name, weight in weights.items()}


def _forward(weights, name, layers, hidden):
  for index in range(layers):
    hidden = np.tanh(hidden @ weights[f"{name}/hidden_{index}/kernel"]
                     + weights[f"{name}/hidden_{index}/bias"])
  return (hidden @ weights[f"{name}/output/kernel"]
          + weights[f"{name}/output/bias"])


@modes.both
@pytest.mark.parametrize("layers", [(), (5,), (5, 3)])
def test_value_is_tanh_layers_and_a_linear_one(prepare, layers):
  network = _value(layers)
  weights = _randomized(network)
  np.testing.assert_allclose(
      prepare(network)(tf.constant(_features())),
      _forward(weights, "value", len(layers), _features()), rtol=1e-4)


@modes.both
def test_categorical_is_tanh_layers_and_a_linear_one(prepare):
  network = _categorical()
  weights = _randomized(network)
  np.testing.assert_allclose(
      prepare(network)(tf.constant(_features())),
      _forward(weights, "policy", 2, _features()), rtol=1e-4)


@modes.both
def test_gaussian_adds_log_stds_that_do_not_depend_on_the_state(prepare):
  network = _gaussian()
  weights = _randomized(network)
  mean, log_std = np.split(
      prepare(network)(tf.constant(_features())).numpy(), 2, -1)
  np.testing.assert_allclose(
      mean, _forward(weights, "policy", 2, _features()), rtol=1e-4)
  np.testing.assert_allclose(
      log_std, np.tile(weights["policy/log_std"], (6, 1)), rtol=1e-6)


@pytest.mark.parametrize("init_std", [0.1, 0.6, 2.0])
def test_gaussian_begins_in_the_middle_with_the_initial_std(init_std):
  mean, log_std = np.split(
      _gaussian(init_std=init_std)(_features(100)).numpy(), 2, -1)
  np.testing.assert_allclose(np.exp(log_std), init_std, rtol=1e-5)
  assert 0 < np.abs(mean).max() < 0.1


def test_categorical_begins_nearly_undecided():
  logits = _categorical()(_features(100)).numpy()
  assert 0 < np.abs(logits).max() < 0.1


@pytest.mark.parametrize("make, output_gain", [
    (_gaussian, 0.01), (_categorical, 0.01), (_value, 1.0)])
def test_initial_layers_are_orthogonal_with_zero_bias(make, output_gain):
  for name, weight in _weights(make(layers=(8, 3))).items():
    if name.endswith("bias"):
      np.testing.assert_array_equal(weight, 0)
    elif name.endswith("kernel"):
      kernel = weight.numpy()
      if kernel.shape[0] < kernel.shape[1]:
        kernel = kernel.T
      gain = output_gain if "output" in name else np.sqrt(2)
      np.testing.assert_allclose(
          kernel.T @ kernel, gain ** 2 * np.eye(kernel.shape[1]), atol=1e-5)


@_each_network
def test_same_seed_same_weights_other_seed_others(make):
  first, again, other = (
      _weights(make(seed=seed)) for seed in (0, 0, 1))
  for name, weight in first.items():
    np.testing.assert_array_equal(weight, again[name])
    if name.endswith("kernel"):
      assert (weight.numpy() != other[name].numpy()).any()


def test_layers_of_one_shape_begin_differently():
  weights = _weights(_value(layers=(_INPUTS, _INPUTS, _INPUTS)))
  kernels = [weights[f"value/hidden_{index}/kernel"].numpy()
             for index in range(3)]
  assert (kernels[0] != kernels[1]).any()
  assert (kernels[1] != kernels[2]).any()


@_each_network
def test_every_weight_has_a_gradient(make):
  network = make()
  _randomized(network)
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.square(network(tf.constant(_features()))))
  for gradient in tape.gradient(loss, network.trainable_variables):
    assert np.abs(gradient).max() > 0
