"""Compares networks with NumPy, and checks their initial weights."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import config as config_lib
from agents.networks import distribution_for_space, feed_forward
from tests.support import modes

_INPUTS = 4


def _config(layers, **changes):
  return config_lib.Network(policy_layers=layers, value_layers=layers, **changes)


def _policy(space, layers, seed, **changes):
  config = _config(layers, **changes)
  return feed_forward.Policy(distribution_for_space.make(space, config), config, seed)


def _gaussian(layers=(5, 3), seed=0, **changes):
  return _policy(gymnasium.spaces.Box(-1, 1, (2,)), layers, seed, **changes)


def _categorical(layers=(5, 3), seed=0, **changes):
  return _policy(gymnasium.spaces.Discrete(2), layers, seed, **changes)


def _value(layers=(5, 3), seed=0, **changes):
  return feed_forward.feed_forward_value(_config(layers, **changes), seed)


_each_network = pytest.mark.parametrize("make", [_gaussian, _categorical, _value])


def _features(rows=6):
  rng = np.random.default_rng(0)
  return rng.normal(size=(rows, _INPUTS)).astype(np.float32)


def _weights(network):
  network(tf.zeros([1, _INPUTS]))
  return {weight.path: weight for weight in network.trainable_variables}


def _randomized(network):
  """Draws random weights, because initial biases of zero would hide errors."""
  rng = np.random.default_rng(1)
  weights = _weights(network)
  for weight in weights.values():
    weight.assign(rng.normal(size=weight.shape))
  return {name: weight.numpy().astype(np.float64) for name, weight in weights.items()}


_ACTIVATIONS = {
  "tanh": np.tanh,
  "relu": lambda x: np.where(x > 0, x, 0),
  "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}


def _forward(weights, name, layers, hidden, activation="tanh"):
  for index in range(layers):
    hidden = _ACTIVATIONS[activation](
      hidden @ weights[f"{name}/hidden_{index}/kernel"] + weights[f"{name}/hidden_{index}/bias"]
    )
  return hidden @ weights[f"{name}/output/kernel"] + weights[f"{name}/output/bias"]


_each_activation = pytest.mark.parametrize("activation", list(_ACTIVATIONS))


@modes.eager_and_compiled
@pytest.mark.parametrize("layers", [(), (5,), (5, 3)])
def test_value_network_equals_its_transcription(prepare, layers):
  network = _value(layers)
  weights = _randomized(network)
  np.testing.assert_allclose(
    prepare(network)(tf.constant(_features())),
    _forward(weights, "value", len(layers), _features()),
    rtol=1e-4,
  )


@_each_activation
@pytest.mark.parametrize("make, name", [(_value, "value"), (_categorical, "policy")])
def test_only_hidden_layers_have_the_activation(make, name, activation):
  # `mean_activation` applies neither to logits nor to values.
  network = make(activation=activation, mean_activation="tanh")
  weights = _randomized(network)
  expected = _forward(weights, name, 2, _features(), activation)
  assert np.abs(np.tanh(expected) - expected).max() > 0.01
  np.testing.assert_allclose(network(tf.constant(_features())), expected, rtol=1e-4)


@pytest.mark.fast_variants(3)
@modes.eager_and_compiled
@_each_activation
@pytest.mark.parametrize("mean_activation", ["linear", "tanh"])
def test_gaussian_log_stds_are_independent_of_the_state(prepare, activation, mean_activation):
  network = _gaussian(activation=activation, mean_activation=mean_activation)
  weights = _randomized(network)
  mean, log_std = np.split(prepare(network)(tf.constant(_features())).numpy(), 2, -1)
  expected = _forward(weights, "policy", 2, _features(), activation)
  if mean_activation == "tanh":
    expected = np.tanh(expected)
  np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(log_std, np.tile(weights["policy/log_std"], (6, 1)), rtol=1e-6)


@pytest.mark.parametrize("init_std", [0.1, 0.6, 2.0])
def test_new_gaussian_is_centered_with_the_initial_std(init_std):
  mean, log_std = np.split(_gaussian(init_std=init_std)(_features(100)).numpy(), 2, -1)
  np.testing.assert_allclose(np.exp(log_std), init_std, rtol=1e-5)
  assert 0 < np.abs(mean).max() < 0.1


def test_new_categorical_is_nearly_uniform():
  logits = _categorical()(_features(100)).numpy()
  assert 0 < np.abs(logits).max() < 0.1


@pytest.mark.parametrize(
  "make, factor, output_gain",
  [
    (_gaussian, 0.01, 0.01),
    (_gaussian, 0.5, 0.5),
    (_categorical, 0.01, 0.01),
    (_value, 0.01, 1.0),
    (_value, 0.5, 1.0),
  ],
)
def test_initial_layers_are_orthogonal_with_zero_bias(make, factor, output_gain):
  # `init_output_factor` scales only the last layer of a policy.
  for name, weight in _weights(make(layers=(8, 3), init_output_factor=factor)).items():
    if name.endswith("bias"):
      np.testing.assert_array_equal(weight, 0)
    elif name.endswith("kernel"):
      kernel = weight.numpy()
      if kernel.shape[0] < kernel.shape[1]:
        kernel = kernel.T
      gain = output_gain if "output" in name else np.sqrt(2)
      np.testing.assert_allclose(kernel.T @ kernel, gain**2 * np.eye(kernel.shape[1]), atol=1e-5)


def _is_glorot(kernel):
  """Checks that a kernel is uniform within sqrt(6 / (inputs + outputs))."""
  bound = np.sqrt(6 / sum(kernel.shape))
  return (
    0.97 * bound < np.abs(kernel).max() < bound
    and abs(kernel.std() / (bound / np.sqrt(3)) - 1) < 0.1
  )


@pytest.mark.parametrize("make", [_gaussian, _categorical, _value])
@pytest.mark.parametrize("factor", [0.1, 1.0])
def test_glorot_layers_are_uniform_within_their_bound(make, factor):
  # `init_output_factor` is the variance of a policy's outputs for features of
  # magnitude 1.
  weights = _weights(make(layers=(100, 400), initializer="glorot", init_output_factor=factor))
  for name, weight in weights.items():
    kernel = weight.numpy()
    if name.endswith("bias"):
      np.testing.assert_array_equal(kernel, 0)
    elif "hidden" in name or name.startswith("value"):
      assert _is_glorot(kernel), name
    elif name.endswith("kernel"):
      std = np.sqrt(factor / 400)  # Normal distribution, truncated at 2 std.
      np.testing.assert_allclose(kernel.std(), std, rtol=0.1)
      assert 1.8 * std < np.abs(kernel).max() < 2 * std / 0.8796
      assert abs(kernel.mean()) < 5 * std / np.sqrt(kernel.size)


@_each_network
@pytest.mark.parametrize("initializer", ["orthogonal", "glorot"])
def test_initial_weights_depend_only_on_the_seed(make, initializer):
  first, again, other = (_weights(make(seed=seed, initializer=initializer)) for seed in (0, 0, 1))
  for name, weight in first.items():
    np.testing.assert_array_equal(weight, again[name])
    if name.endswith("kernel"):
      assert (weight.numpy() != other[name].numpy()).any()


@pytest.mark.parametrize("initializer", ["orthogonal", "glorot"])
def test_layers_of_equal_shape_have_different_weights(initializer):
  weights = _weights(_value(layers=(_INPUTS, _INPUTS, _INPUTS), initializer=initializer))
  kernels = [weights[f"value/hidden_{index}/kernel"].numpy() for index in range(3)]
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
