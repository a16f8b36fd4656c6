"""Compares running moments with NumPy's moments of all samples."""

import numpy as np
import pytest
import tensorflow as tf

from agents.networks import normalization
from tests.support import modes


def _batches(seed=0, dims=3):
  """Returns batches of several sizes and scales."""
  rng = np.random.default_rng(seed)
  scale = 10.0 ** np.arange(dims)
  return [
    (rng.normal(size=(size, dims)) * scale + 5 * scale).astype(np.float32)
    for size in (7, 1, 64, 20)
  ]


def _all_valid(samples):
  return tf.constant(samples), tf.fill([len(samples)], True)


@modes.compiled_slowly
def test_moments_equal_those_of_all_samples(prepare):
  moments = normalization.RunningMoments((3,), "test")
  update = prepare(moments.update)
  seen = []
  for batch in _batches():
    update(*_all_valid(batch))
    seen.append(batch.astype(np.float64))
    together = np.concatenate(seen)
    assert moments.count.numpy() == len(together)
    np.testing.assert_allclose(moments.mean, together.mean(0), rtol=1e-12)
    np.testing.assert_allclose(moments.squares, together.var(0) * len(together), rtol=1e-10)
    np.testing.assert_allclose(moments.std, together.std(0), rtol=1e-10)


@modes.compiled_slowly
def test_small_spread_around_a_large_mean_is_exact(prepare):
  rng = np.random.default_rng(0)
  samples = (1e4 + 0.1 * rng.normal(size=(10, 500))).astype(np.float32)
  moments = normalization.RunningMoments((), "test")
  update = prepare(moments.update)
  for batch in samples:
    update(*_all_valid(batch))
  np.testing.assert_allclose(moments.std, samples.astype(np.float64).std(), rtol=1e-8)


@modes.compiled_slowly
def test_one_sample_counts_after_very_many(prepare):
  # Moments of 2^39 zeros and 2^39 ones; float32 stops counting at 2^24.
  count = 2.0**40
  moments = normalization.RunningMoments((), "test")
  moments.count.assign(count)
  moments.mean.assign(0.5)
  moments.squares.assign(0.25 * count)
  prepare(moments.update)(*_all_valid([4.5]))
  assert moments.count.numpy() == count + 1
  added = moments.mean.numpy() - 0.5
  np.testing.assert_allclose(added, 4 / (count + 1), rtol=1e-3)
  np.testing.assert_allclose(moments.squares.numpy() - 0.25 * count, 16, rtol=1e-3)


def test_normalizing_gives_mean_zero_and_std_one():
  moments = normalization.RunningMoments((3,), "test")
  batches = np.concatenate(_batches())
  moments.update(*_all_valid(batches))
  normalized = moments.normalize(tf.constant(batches), 100.0).numpy()
  assert normalized.dtype == np.float32
  np.testing.assert_allclose(normalized.mean(0), 0, atol=1e-5)
  np.testing.assert_allclose(normalized.std(0), 1, rtol=1e-5)


def test_normalizing_equals_the_formula_and_clips():
  moments = normalization.RunningMoments((2,), "test")
  moments.update(*_all_valid([[-1.0, 10.0], [3.0, 30.0]]))
  samples = np.array([[1, 20], [4, 0], [100, -1000]], np.float32)
  np.testing.assert_allclose(
    moments.normalize(tf.constant(samples), 1.75), [[0, 0], [1.5, -1.75], [1.75, -1.75]], atol=1e-6
  )


def test_normalizing_before_the_first_update_only_clips():
  moments = normalization.RunningMoments((1,), "test")
  assert moments.std.numpy() == 1
  np.testing.assert_allclose(
    moments.normalize(tf.constant([[-20.0], [3.0]]), 10.0), [[-10.0], [3.0]]
  )


def test_constants_are_normalized_to_zero():
  moments = normalization.RunningMoments((1,), "test")
  constant = tf.fill([33, 1], 0.1)
  for _ in range(3):
    moments.update(constant, tf.fill([33], True))
  np.testing.assert_array_equal(moments.normalize(constant, 10.0), 0)


def test_normalizing_changes_no_variable():
  moments = normalization.RunningMoments((3,), "test")
  moments.update(*_all_valid(_batches()[0]))
  before = [variable.numpy().copy() for variable in moments.variables]
  first = moments.normalize(tf.constant(_batches(1)[2]), 10.0).numpy()
  second = moments.normalize(tf.constant(_batches(1)[2]), 10.0).numpy()
  np.testing.assert_array_equal(first, second)
  for variable, value in zip(moments.variables, before, strict=True):
    np.testing.assert_array_equal(variable, value)


def test_variables_contain_the_complete_state():
  moments = normalization.RunningMoments((3,), "test")
  copy = normalization.RunningMoments((3,), "test")
  moments.update(*_all_valid(_batches()[0]))
  for source, target in zip(moments.variables, copy.variables, strict=True):
    target.assign(source)
  for batch in _batches(1):
    for each in (moments, copy):
      each.update(*_all_valid(batch))
  for name in ("count", "mean", "squares"):
    np.testing.assert_array_equal(getattr(moments, name), getattr(copy, name))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_moments_are_independent_of_the_order_of_batches(order):
  moments = normalization.RunningMoments((3,), "test")
  batches = _batches()
  for index in order:
    moments.update(*_all_valid(batches[index]))
  np.testing.assert_allclose(
    moments.std, np.concatenate(batches).astype(np.float64).std(0), rtol=1e-10
  )


@modes.compiled_slowly
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_only_valid_samples_count(prepare, shape):
  rng = np.random.default_rng(0)
  moments = normalization.RunningMoments(shape, "test")
  update = prepare(moments.update)
  seen = []
  for num_valid in (20, 0, 1, 13):
    samples = rng.normal(3, 5, (20, *shape)).astype(np.float32)
    valid = np.isin(np.arange(20), rng.permutation(20)[:num_valid])
    samples[~valid] = 1e6
    update(tf.constant(samples), tf.constant(valid))
    seen.extend(samples[valid].astype(np.float64))
    assert moments.count.numpy() == len(seen)
    np.testing.assert_allclose(moments.mean, np.mean(seen, 0), rtol=1e-12)
    np.testing.assert_allclose(moments.std, np.std(seen, 0), rtol=1e-10)


def test_update_without_valid_samples_changes_nothing():
  moments = normalization.RunningMoments((3,), "test")
  moments.update(tf.ones([2, 3]), tf.constant([False, False]))
  assert moments.count == 0
  assert not moments.mean.numpy().any() and not moments.squares.numpy().any()
