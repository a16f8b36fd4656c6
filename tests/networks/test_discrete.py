"""Compares discrete distributions with closed forms."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents.networks import distribution_for_space
from tests.networks import drawing
from tests.support import modes


def _categorical(choices, start=0):
  return distribution_for_space.make(gymnasium.spaces.Discrete(choices, start=start))


def _softmax(logits):
  exponential = np.exp(logits - logits.max(-1, keepdims=True))
  return exponential / exponential.sum(-1, keepdims=True)


@modes.compiled_slowly
@pytest.mark.parametrize("start", [0, 3])
def test_categorical_actions_start_at_zero_in_every_space(prepare, start):
  dist = _categorical(3, start)
  parameters = tf.constant(drawing.parameters(dist, 0, rows=50))
  assert (dist.noise_size, dist.size) == (3, 3)
  for action in (prepare(dist.mode)(parameters), drawing.sample(dist, parameters, prepare=prepare)):
    assert action.shape == (50,) and action.dtype == tf.int64
    np.testing.assert_array_equal(np.unique(action), [0, 1, 2])
    assert dist.log_prob(parameters, action).shape == (50,)
  for result in (dist.entropy(parameters), dist.std(parameters), dist.kl(parameters, parameters)):
    assert result.shape == (50,)


@modes.compiled_slowly
def test_categorical_log_prob_equals_the_closed_form(prepare):
  dist = _categorical(3)
  parameters = 3 * drawing.parameters(dist, 0)
  action = np.array([0, 1, 2, 1])
  log_softmax = np.log(_softmax(parameters.astype(np.float64)))
  np.testing.assert_allclose(
    prepare(dist.log_prob)(tf.constant(parameters), tf.constant(action)),
    log_softmax[np.arange(4), action],
    rtol=1e-5,
  )


@modes.compiled_slowly
def test_categorical_entropy_and_kl_equal_the_closed_forms(prepare):
  dist = _categorical(5)
  first, second = (2 * drawing.parameters(dist, seed) for seed in (0, 1))

  def entropy_and_kl(first, second):
    return dist.entropy(first), dist.kl(first, second)

  entropy, kl = prepare(entropy_and_kl)(tf.constant(first), tf.constant(second))
  p, q = _softmax(first.astype(np.float64)), _softmax(second.astype(np.float64))
  np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(-1), rtol=1e-5)
  np.testing.assert_allclose(kl, (p * np.log(p / q)).sum(-1), rtol=1e-4, atol=1e-6)


@modes.compiled_slowly
def test_categorical_samples_follow_the_softmax(prepare):
  dist = _categorical(4)
  num_samples = 50_000
  logits = np.array([1.0, -2.0, 101.0, 102.0]) - [0, 0, 100, 100]
  samples = drawing.sample(
    dist, tf.constant(np.tile(logits, (num_samples, 1)), tf.float32), prepare=prepare
  ).numpy()
  probability = _softmax(logits)
  error = np.sqrt(probability * (1 - probability) / num_samples)
  frequency = np.bincount(samples, minlength=4) / num_samples
  assert (np.abs(frequency - probability) < 5 * error).all()


def test_categorical_never_samples_choices_with_very_low_logits():
  dist = _categorical(3)
  parameters = tf.constant(np.tile([0.0, -1e4, 0.0], (20_000, 1)), tf.float32)
  samples = drawing.sample(dist, parameters).numpy()
  np.testing.assert_array_equal(np.unique(samples), [0, 2])


def test_categorical_mode_and_std_equal_the_closed_forms():
  dist = _categorical(3)
  parameters = drawing.parameters(dist, 0)
  np.testing.assert_array_equal(dist.mode(parameters), parameters.argmax(-1))
  probability = _softmax(parameters)
  np.testing.assert_allclose(
    dist.std(parameters), np.sqrt(probability * (1 - probability)).mean(-1), rtol=1e-5
  )


_NVEC = np.array([[2, 4], [3, 1]])


def _multi():
  return distribution_for_space.make(gymnasium.spaces.MultiDiscrete(_NVEC, start=[[5, 6], [-7, 8]]))


def _split(parameters):
  """Returns the logits of each choice, without the padding to four logits."""
  padded = parameters.astype(np.float64).reshape(-1, 4, 4)
  return [padded[:, index, :choices] for index, choices in enumerate(_NVEC.flatten())]


@modes.compiled_slowly
def test_multi_discrete_results_equal_the_closed_forms(prepare):
  dist = _multi()
  first, second = drawing.parameters(dist, 0), 2 * drawing.parameters(dist, 1)
  action = np.array([[[0, 3], [1, 0]], [[1, 0], [2, 0]], [[1, 1], [0, 0]], [[0, 2], [2, 0]]])
  log_prob, entropy, kl, std = 0, 0, 0, []
  for index, logits in enumerate(zip(_split(first), _split(second))):
    p, q = map(_softmax, logits)
    chosen = action.reshape(4, 4)[:, index]
    log_prob += np.log(p[np.arange(4), chosen])
    entropy -= (p * np.log(p)).sum(-1)
    kl += (p * np.log(p / q)).sum(-1)
    std.append(np.sqrt(p * (1 - p)))

  def results(first, second, action):
    return (
      dist.log_prob(first, action),
      dist.entropy(first),
      dist.kl(first, second),
      dist.std(first),
    )

  found = prepare(results)(*map(tf.constant, (first, second, action)))
  for result, expected in zip(
    found, (log_prob, entropy, kl, np.concatenate(std, -1).mean(-1)), strict=True
  ):
    np.testing.assert_allclose(result, expected, rtol=1e-4)


@modes.compiled_slowly
def test_multi_discrete_samples_follow_the_softmax(prepare):
  dist = _multi()
  num_samples = 20_000
  parameters = drawing.parameters(dist, 0, 1)
  # The padding logits have no effect.
  parameters[0, [2, 3, 11, 13, 14, 15]] = 100
  samples = drawing.sample(
    dist, tf.constant(np.tile(parameters, (num_samples, 1))), prepare=prepare
  )
  assert samples.shape == (num_samples, 2, 2) and samples.dtype == tf.int64
  flat = samples.numpy().reshape(num_samples, 4)
  mode = dist.mode(tf.constant(parameters)).numpy().flatten()
  for index, logits in enumerate(_split(parameters)):
    probability = _softmax(logits)[0]
    error = np.sqrt(probability * (1 - probability) / num_samples)
    frequency = np.bincount(flat[:, index], minlength=len(probability)) / num_samples
    assert (np.abs(frequency - probability) <= 5 * error).all()
    assert mode[index] == probability.argmax()
  correlation = np.corrcoef(flat[:, 0], flat[:, 2])[0, 1]
  assert abs(correlation) < 5 / np.sqrt(num_samples)


@modes.compiled_slowly
@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_bernoulli_results_equal_the_closed_forms(prepare, shape):
  dist = distribution_for_space.make(gymnasium.spaces.MultiBinary(shape))
  first, second = drawing.parameters(dist, 0), 2 * drawing.parameters(dist, 1)
  action = np.random.default_rng(2).integers(0, 2, (4, *shape))
  p, q = (1 / (1 + np.exp(-x.astype(np.float64))) for x in (first, second))
  expected = (
    np.log(np.where(action.reshape(p.shape), p, 1 - p)).sum(-1),
    -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum(-1),
    (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).sum(-1),
    np.sqrt(p * (1 - p)).mean(-1),
  )

  def results(first, second, action):
    return (
      dist.log_prob(first, action),
      dist.entropy(first),
      dist.kl(first, second),
      dist.std(first),
    )

  found = prepare(results)(*map(tf.constant, (first, second, action)))
  for result, closed_form in zip(found, expected, strict=True):
    np.testing.assert_allclose(result, closed_form, rtol=1e-4)
  np.testing.assert_array_equal(dist.mode(tf.constant(first)), (first > 0).reshape(4, *shape))


@modes.compiled_slowly
def test_bernoulli_samples_follow_the_sigmoid(prepare):
  dist = distribution_for_space.make(gymnasium.spaces.MultiBinary(5))
  num_samples = 20_000
  logits = np.array([0.0, -1.0, 2.0, -1e4, 1e4])
  samples = drawing.sample(
    dist, tf.constant(np.tile(logits, (num_samples, 1)), tf.float32), prepare=prepare
  )
  assert samples.dtype == tf.int64
  probability = [0.5, 1 / (1 + np.e), 1 / (1 + np.exp(-2)), 0, 1]
  assert (
    np.abs(samples.numpy().mean(0) - probability)
    <= 5 * samples.numpy().std(0) / np.sqrt(num_samples)
  ).all()
