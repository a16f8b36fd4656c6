"""Penalties on the KL divergence, compared with naive transcriptions."""

import numpy as np
import pytest
import tensorflow as tf

from agents.algorithms import kl_penalty
from tests.support import modes


@modes.eager_and_compiled
@pytest.mark.parametrize(
  "kl, factor",
  [
    (0.0, 1 / 1.5),
    (0.0069, 1 / 1.5),
    (0.0071, 1),
    (0.01, 1),
    (0.0129, 1),
    (0.0131, 1.5),
    (10.0, 1.5),
  ],
)
def test_weight_grows_above_and_shrinks_below_the_target(prepare, kl, factor):
  penalty = kl_penalty.Penalty(2.0, 1.5, 0.01)
  prepare(penalty.adapt)(tf.constant(kl))
  np.testing.assert_allclose(penalty.weight, 2 * factor, rtol=1e-6)


def test_changes_of_the_weight_accumulate():
  penalty = kl_penalty.Penalty(1.0, 3.0, 0.01)
  for kl in (1.0, 1.0, 0.0, 0.01, 1.0):
    penalty.adapt(tf.constant(kl))
  np.testing.assert_allclose(penalty.weight, 9, rtol=1e-6)


@pytest.mark.parametrize(
  "initial, kl, bound", [(1.0, 0.0, 1e-6), (1.0, 1.0, 1e6), (1e-9, 0.0, 1e-9), (1e9, 1.0, 1e9)]
)
def test_weight_stays_within_bounds_and_recovers(initial, kl, bound):
  penalty = kl_penalty.Penalty(initial, 10.0, 0.01)
  for _ in range(20):
    penalty.adapt(tf.constant(kl))
  np.testing.assert_allclose(penalty.weight, bound, rtol=1e-6)
  penalty.adapt(tf.constant(1 - kl))
  np.testing.assert_allclose(penalty.weight, bound * 10 if kl == 0 else bound / 10, rtol=1e-6)


def test_variables_contain_the_complete_state():
  penalty, copy = (kl_penalty.Penalty(initial, 1.5, 0.01) for initial in (1.0, 5.0))
  penalty.adapt(tf.constant(1.0))
  for source, target in zip(penalty.variables, copy.variables, strict=True):
    target.assign(source)
  np.testing.assert_array_equal(copy.weight, penalty.weight)


def _naive_cutoff(kl, sequence, valid, threshold, coef):
  """Returns the loss, and its derivative by the KL of each step, [N]."""
  indices = sorted(set(sequence[valid]))
  loss, slope = 0.0, np.zeros(kl.shape)
  for index in indices:
    members = valid & (sequence == index)
    excess = max(0.0, kl[members].mean() - threshold)
    loss += coef * excess**2 / len(indices)
    slope[members] = coef * 2 * excess / (members.sum() * len(indices))
  return loss, slope


def _cutoff(kl, sequence, valid, num_sequences=9, threshold=1.0, coef=30.0):
  """Returns the loss, and its derivative by the KL of each step, [N]."""
  sums = kl_penalty.sum_by_sequence(kl, sequence, valid, num_sequences)
  loss, kl_gradient = kl_penalty.cutoff(*sums, threshold, coef)
  return loss, tf.where(valid, tf.gather(kl_gradient, sequence), 0.0)


def _random_steps(seed, num_steps=24, num_sequences=9):
  """Returns KL divergence, sequence index and validity of each step, [N].

  Some sequences have no steps.
  """
  rng = np.random.default_rng(seed)
  return (
    rng.exponential(size=num_steps).astype(np.float32),
    rng.integers(0, num_sequences - 2, num_steps).astype(np.int32),
    rng.random(num_steps) < 0.7,
  )


@modes.eager_and_compiled
@pytest.mark.parametrize("seed", range(3))
def test_cutoff_equals_its_naive_transcription(prepare, seed):
  kl, sequence, valid = _random_steps(seed)
  loss, slope = prepare(_cutoff)(*map(tf.constant, (kl, sequence, valid)))
  expected_loss, expected_slope = _naive_cutoff(kl.astype(np.float64), sequence, valid, 1.0, 30.0)
  # Some sequences exceed the threshold.
  assert 0 < (expected_slope[valid] > 0).sum() < valid.sum()
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
  np.testing.assert_allclose(slope, expected_slope, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_kl_gradient_is_the_gradient_of_the_cutoff(seed):
  kl, sequence, valid = map(tf.constant, _random_steps(seed))
  with tf.GradientTape() as tape:
    tape.watch(kl)
    loss, slope = _cutoff(kl, sequence, valid)
  np.testing.assert_allclose(slope, tape.gradient(loss, kl), rtol=1e-5)


def test_sums_include_only_valid_steps():
  kl, length = kl_penalty.sum_by_sequence(
    tf.constant([1.0, 10.0, 100.0, 1000.0]),
    tf.constant([0, 2, 2, 0]),
    tf.constant([True, True, True, False]),
    4,
  )
  np.testing.assert_array_equal(kl, [1, 0, 110, 0])
  np.testing.assert_array_equal(length, [1, 0, 2, 0])


def test_sums_of_chunks_add_up():
  steps = _random_steps(0)
  expected = kl_penalty.sum_by_sequence(*map(tf.constant, steps), 9)
  parts = [
    kl_penalty.sum_by_sequence(*[tf.constant(x[rows]) for x in steps], 9)
    for rows in (slice(0, 7), slice(7, 24))
  ]
  for total, *summands in zip(expected, *parts, strict=True):
    np.testing.assert_allclose(sum(summands), total, rtol=1e-6)


def test_sequences_below_the_threshold_have_no_penalty():
  kl = tf.constant([0.5, 1.4, 3.0])  # Means of the sequences: 0.95 and 3.
  loss, slope = _cutoff(kl, tf.constant([0, 0, 1]), tf.fill([3], True), 2, 1.0, 10.0)
  np.testing.assert_allclose(loss, 10 * 2.0**2 / 2, rtol=1e-6)
  np.testing.assert_allclose(slope, [0, 0, 10 * 2 * 2.0 / 2], rtol=1e-6)


def test_sequences_of_all_lengths_have_equal_weight():
  kl = tf.constant([2.0, 2.0, 2.0, 2.0, 3.0])
  loss, slope = _cutoff(kl, tf.constant([4, 4, 4, 4, 1]), tf.fill([5], True), 6, 1.0, 1.0)
  np.testing.assert_allclose(loss, (1 + 4) / 2, rtol=1e-6)
  np.testing.assert_allclose(slope, [0.25] * 4 + [2], rtol=1e-6)


def test_invalid_steps_do_not_change_the_cutoff():
  kl, sequence, valid = _random_steps(0)
  before = _cutoff(*map(tf.constant, (kl, sequence, valid)))
  kl[~valid], sequence[~valid] = 1e6, 7
  after = _cutoff(*map(tf.constant, (kl, sequence, valid)))
  for got, wanted in zip(after, before, strict=True):
    np.testing.assert_array_equal(got, wanted)
