"""Distributions over actions against closed forms and integrals."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents.networks import heads
from agents.ops import random
from tests import modes


def _gaussian(shape):
  return heads.make(gymnasium.spaces.Box(-1, 1, shape, np.float32))


def _categorical(choices, start=0):
  return heads.make(gymnasium.spaces.Discrete(choices, start=start))


def _parameters(head, seed, rows=4):
  rng = np.random.default_rng(seed)
  return rng.normal(size=(rows, head.size)).astype(np.float32)


def _key(counter=0):
  return random.key(5, tf.constant(counter))


def _softmax(logits):
  exponential = np.exp(logits - logits.max(-1, keepdims=True))
  return exponential / exponential.sum(-1, keepdims=True)


def _sample(head, parameters, counter=0, prepare=lambda function: function):
  noise = prepare(head.noise)(parameters.shape[0], _key(counter))
  return prepare(head.sample)(parameters, noise)


_each_shape = pytest.mark.parametrize(
    "shape, actions", [((), 1), ((3,), 3), ((2, 3), 6)])


@_each_shape
def test_gaussian_shapes(shape, actions):
  head = _gaussian(shape)
  parameters = tf.constant(_parameters(head, 0))
  assert (head.noise_size, head.size) == (actions, 2 * actions)
  for action in (head.mode(parameters), _sample(head, parameters)):
    assert action.shape == (4, *shape) and action.dtype == tf.float32
    assert head.log_prob(parameters, action).shape == (4,)
  for result in (head.entropy(parameters), head.std(parameters),
                 head.kl(parameters, parameters)):
    assert result.shape == (4,)


@modes.both
@_each_shape
def test_gaussian_log_prob_is_the_closed_form(prepare, shape, actions):
  head = _gaussian(shape)
  parameters = _parameters(head, 0)
  # Far outside of the space, too: nothing is clipped.
  action = 5 * np.random.default_rng(1).normal(size=(4, *shape))
  mean, log_std = np.split(parameters.astype(np.float64), 2, -1)
  deviation = (action.reshape(4, actions) - mean) / np.exp(log_std)
  expected = (-0.5 * deviation ** 2 - log_std - 0.5 * np.log(2 * np.pi)).sum(-1)
  np.testing.assert_allclose(
      prepare(head.log_prob)(
          tf.constant(parameters), tf.constant(action, tf.float32)),
      expected, rtol=1e-5)


def test_gaussian_agrees_with_integrals():
  head = _gaussian((1,))
  grid = np.linspace(-12, 12, 24_001)
  width = grid[1] - grid[0]
  first = np.array([[0.5, np.log(0.7)]], np.float32)
  second = np.array([[-0.3, np.log(1.2)]], np.float32)
  def log_density(parameters):
    return head.log_prob(
        tf.repeat(parameters, len(grid), 0),
        tf.constant(grid[:, None], tf.float32)).numpy().astype(np.float64)
  log_p, log_q = log_density(first), log_density(second)
  p = np.exp(log_p)
  assert abs((p * width).sum() - 1) < 1e-5
  np.testing.assert_allclose(
      head.entropy(tf.constant(first)), [-(p * log_p * width).sum()],
      rtol=1e-4)
  np.testing.assert_allclose(
      head.kl(tf.constant(first), tf.constant(second)),
      [(p * (log_p - log_q) * width).sum()], rtol=1e-4)


@modes.both
def test_gaussian_entropy_and_kl_are_the_closed_forms(prepare):
  head = _gaussian((2, 3))
  first, second = _parameters(head, 0), _parameters(head, 1)
  def entropy_and_kl(first, second):
    return head.entropy(first), head.kl(first, second)
  entropy, kl = prepare(entropy_and_kl)(
      tf.constant(first), tf.constant(second))
  mean, log_std = np.split(first.astype(np.float64), 2, -1)
  other_mean, other_log_std = np.split(second.astype(np.float64), 2, -1)
  np.testing.assert_allclose(
      entropy, (log_std + 0.5 * np.log(2 * np.pi * np.e)).sum(-1), rtol=1e-5)
  expected = other_log_std - log_std - 0.5 + (
      np.exp(2 * log_std) + (mean - other_mean) ** 2) / (
          2 * np.exp(2 * other_log_std))
  np.testing.assert_allclose(kl, expected.sum(-1), rtol=1e-5)


def test_gaussian_samples_have_mean_and_std_of_the_parameters():
  head = _gaussian((2,))
  amount = 50_000
  mean, std = np.array([0.5, -3.0]), np.array([0.1, 2.0])
  parameters = tf.constant(np.tile(
      np.concatenate([mean, np.log(std)]), (amount, 1)), tf.float32)
  samples = _sample(head, parameters).numpy()
  error = std / np.sqrt(amount)
  assert (np.abs(samples.mean(0) - mean) < 5 * error).all()
  assert (np.abs(samples.std(0) - std) < 5 * error / np.sqrt(2)).all()
  assert abs(np.corrcoef(samples.T)[0, 1]) < 5 / np.sqrt(amount)


def test_gaussian_mode_and_std_are_the_parameters():
  head = _gaussian((2, 2))
  parameters = _parameters(head, 0)
  np.testing.assert_array_equal(
      head.mode(parameters), parameters[:, :4].reshape(4, 2, 2))
  np.testing.assert_allclose(
      head.std(parameters), np.exp(parameters[:, 4:]).mean(-1), rtol=1e-6)


@modes.both
@pytest.mark.parametrize("start", [0, 3])
def test_categorical_shapes_count_from_zero(prepare, start):
  head = _categorical(3, start)
  parameters = tf.constant(_parameters(head, 0, rows=50))
  assert (head.noise_size, head.size) == (3, 3)
  for action in (prepare(head.mode)(parameters),
                 _sample(head, parameters, prepare=prepare)):
    assert action.shape == (50,) and action.dtype == tf.int64
    np.testing.assert_array_equal(np.unique(action), [0, 1, 2])
    assert head.log_prob(parameters, action).shape == (50,)
  for result in (head.entropy(parameters), head.std(parameters),
                 head.kl(parameters, parameters)):
    assert result.shape == (50,)


@modes.both
def test_categorical_log_prob_is_the_closed_form(prepare):
  head = _categorical(3)
  parameters = 3 * _parameters(head, 0)
  action = np.array([0, 1, 2, 1])
  log_softmax = np.log(_softmax(parameters.astype(np.float64)))
  np.testing.assert_allclose(
      prepare(head.log_prob)(tf.constant(parameters), tf.constant(action)),
      log_softmax[np.arange(4), action], rtol=1e-5)


@modes.both
def test_categorical_entropy_and_kl_are_the_closed_forms(prepare):
  head = _categorical(5)
  first, second = 2 * _parameters(head, 0), 2 * _parameters(head, 1)
  def entropy_and_kl(first, second):
    return head.entropy(first), head.kl(first, second)
  entropy, kl = prepare(entropy_and_kl)(
      tf.constant(first), tf.constant(second))
  p, q = _softmax(first.astype(np.float64)), _softmax(second.astype(np.float64))
  np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(-1), rtol=1e-5)
  np.testing.assert_allclose(
      kl, (p * np.log(p / q)).sum(-1), rtol=1e-4, atol=1e-6)


@modes.both
def test_categorical_samples_as_often_as_the_softmax_says(prepare):
  head = _categorical(4)
  amount = 50_000
  logits = np.array([1.0, -2.0, 101.0, 102.0]) - [0, 0, 100, 100]
  samples = _sample(
      head, tf.constant(np.tile(logits, (amount, 1)), tf.float32),
      prepare=prepare).numpy()
  probability = _softmax(logits)
  error = np.sqrt(probability * (1 - probability) / amount)
  frequency = np.bincount(samples, minlength=4) / amount
  assert (np.abs(frequency - probability) < 5 * error).all()


def test_categorical_never_samples_the_impossible():
  head = _categorical(3)
  parameters = tf.constant(np.tile([0.0, -1e4, 0.0], (20_000, 1)), tf.float32)
  samples = _sample(head, parameters).numpy()
  np.testing.assert_array_equal(np.unique(samples), [0, 2])


def test_categorical_mode_and_std():
  head = _categorical(3)
  parameters = _parameters(head, 0)
  np.testing.assert_array_equal(
      head.mode(parameters), parameters.argmax(-1))
  probability = _softmax(parameters)
  np.testing.assert_allclose(
      head.std(parameters),
      np.sqrt(probability * (1 - probability)).mean(-1), rtol=1e-5)


@pytest.mark.parametrize("head", [_gaussian((2,)), _categorical(3)])
def test_sampling_repeats_by_key_and_the_kl_to_itself_is_zero(head):
  parameters = tf.constant(_parameters(head, 0, rows=20))
  first, again, other = (
      _sample(head, parameters, counter).numpy() for counter in (0, 0, 1))
  np.testing.assert_array_equal(first, again)
  assert (first != other).any()
  np.testing.assert_allclose(
      head.kl(parameters, parameters), np.zeros(20), atol=1e-7)


@pytest.mark.parametrize("head", [_gaussian((2,)), _categorical(3)])
def test_the_divergence_is_from_the_first_to_the_second(head):
  first, second = (tf.constant(_parameters(head, seed)) for seed in (0, 1))
  first *= 2
  forth, back = head.kl(first, second), head.kl(second, first)
  assert (forth > 0).numpy().all()
  # The mean of the log ratio over samples of the first one.
  rows = tf.repeat(first[:1], 40_000, 0)
  action = _sample(head, rows)
  ratio = head.log_prob(rows, action) - head.log_prob(
      tf.repeat(second[:1], 40_000, 0), action)
  error = np.std(ratio) / np.sqrt(40_000)
  assert abs(np.mean(ratio) - forth[0]) < 5 * error
  assert abs(np.mean(ratio) - back[0]) > 5 * error


@pytest.mark.parametrize("low, high", [(-1, 1), (-0.4, 0.4), (5, 10)])
def test_saturation_is_the_share_of_dimensions_out_of_bounds(low, high):
  # Bounded actions span [-1, 1] for the agent, whatever the environment's do.
  head = heads.make(gymnasium.spaces.Box(low, high, (2, 2)))
  action = tf.constant([[[0.0, 1.0], [-1.0, 0.5]], [[1.1, 0], [-3, 0]],
                        [[5, 5], [5, 5]]])
  np.testing.assert_array_equal(head.saturation(action), [0, 0.5, 1])


def test_what_has_no_bounds_is_not_saturated():
  action = tf.constant([[[0.0, 9.0], [-9.0, 0.5]]] * 3)
  unbounded = heads.make(gymnasium.spaces.Box(-np.inf, np.inf, (2, 2)))
  np.testing.assert_array_equal(unbounded.saturation(action), [0, 0, 0])
  half = heads.make(gymnasium.spaces.Box(0, np.inf, (2, 2)))
  np.testing.assert_array_equal(half.saturation(action), [0.25] * 3)
  np.testing.assert_array_equal(
      _categorical(3).saturation(tf.constant([0, 2], tf.int64)), [0, 0])
