"""Tests the encoding of observations as vectors."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents.networks import observation_encoder, observation_moments
from tests.support import modes


def _box(shape, dtype=np.float32):
  low, high = (0, 255) if dtype == np.uint8 else (-np.inf, np.inf)
  return gymnasium.spaces.Box(low, high, shape, dtype)


def _encoder(space, normalize=True, clip=10.0):
  make_moments = observation_moments.make_running if normalize else None
  return observation_encoder.ObservationEncoder(space, make_moments, clip)


def _all_valid(samples):
  return tf.constant(samples), tf.fill([len(samples)], True)


@modes.eager_and_compiled
@pytest.mark.parametrize("shape, size", [((), 1), ((4,), 4), ((2, 3), 6)])
def test_floats_are_flattened_and_normalized(prepare, shape, size):
  rng = np.random.default_rng(0)
  observ = rng.normal(3, 5, size=(50, *shape)).astype(np.float32)
  encoder = _encoder(_box(shape), clip=1.5)
  assert encoder.size == size
  prepare(encoder.update)(*_all_valid(observ))
  flat = observ.reshape(50, size).astype(np.float64)
  expected = np.clip((flat - flat.mean(0)) / flat.std(0), -1.5, 1.5)
  assert (np.abs(expected) == 1.5).any()
  np.testing.assert_allclose(prepare(encoder)(tf.constant(observ)), expected, atol=1e-5)


def test_moments_count_samples_not_batches():
  encoder = _encoder(_box((2, 3)))
  encoder.update(tf.ones([5, 2, 3]), tf.range(5) < 4)
  encoder.update(*_all_valid(tf.ones([7, 2, 3])))
  assert encoder.moments.count.numpy() == 11


def test_only_valid_samples_count():
  encoder = _encoder(_box((2, 2)))
  observ = np.arange(20, dtype=np.float32).reshape(5, 2, 2)
  encoder.update(tf.constant(observ), tf.constant([True, False, True, True, False]))
  chosen = observ[[0, 2, 3]].reshape(3, 4)
  np.testing.assert_allclose(encoder.moments.mean, chosen.mean(0))
  np.testing.assert_allclose(encoder.moments.std, chosen.std(0), rtol=1e-6)


def test_unnormalized_floats_are_only_flattened():
  encoder = _encoder(_box((2, 3)), normalize=False, clip=1.0)
  observ = 100 * np.arange(12, dtype=np.float32).reshape(2, 2, 3)
  encoder.update(*_all_valid(observ))
  assert encoder.moments is None
  np.testing.assert_array_equal(encoder(tf.constant(observ)), observ.reshape(2, 6))


@modes.eager_and_compiled
def test_bytes_become_numbers_from_zero_to_one(prepare):
  space = gymnasium.spaces.Box(
    np.array([[0, 50], [2, 7]], np.uint8), np.array([[255, 60], [3, 7]], np.uint8), dtype=np.uint8
  )
  encoder = _encoder(space, normalize=False)
  observ = np.array([[[51, 55], [3, 7]]], np.uint8)
  encoder.update(*_all_valid(observ))
  assert encoder.size == 4 and encoder.moments is None
  result = prepare(encoder)(tf.constant(observ))
  assert result.dtype == tf.float32
  np.testing.assert_allclose(result, [[0.2, 0.5, 1, 0]], rtol=1e-6)


@modes.eager_and_compiled
def test_bytes_of_any_range_are_normalized(prepare):
  encoder = _encoder(_box((2,), np.uint8))
  observ = np.array([[0, 100], [1, 200]], np.uint8)
  encoder.update(*_all_valid(observ))
  np.testing.assert_allclose(prepare(encoder)(tf.constant(observ)), [[-1, -1], [1, 1]], rtol=1e-4)


@modes.eager_and_compiled
@pytest.mark.parametrize("start", [0, -2, 2**40])
def test_choices_become_one_hot_vectors_relative_to_the_start(prepare, start):
  space = gymnasium.spaces.Discrete(3, start=start)
  encoder = _encoder(space)
  observ = tf.constant([start, start + 2, start + 1], tf.int64)
  encoder.update(*_all_valid(observ))
  assert encoder.size == 3 and encoder.moments is None
  result = prepare(encoder)(observ)
  assert result.dtype == tf.float32
  np.testing.assert_array_equal(result, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_other_boxes_become_floats_and_are_normalized(dtype):
  space = gymnasium.spaces.Box(-100, 100, (2,), dtype)
  encoder = _encoder(space)
  observ = tf.constant([[1.0, 10.0], [3.0, 30.0]])
  encoder.update(*_all_valid(observ))
  np.testing.assert_allclose(encoder(observ), [[-1, -1], [1, 1]], rtol=1e-6)


def test_encoding_changes_only_by_updates():
  encoder = _encoder(_box((2,)))
  first = tf.constant([[1.0, 2.0], [5.0, 0.0]])
  encoder.update(*_all_valid(first))
  before = encoder(first).numpy()
  encoder(tf.constant([[100.0, 200.0]]))
  np.testing.assert_array_equal(encoder(first), before)
  encoder.update(*_all_valid([[100.0, 200.0]]))
  assert (encoder(first).numpy() != before).all()


def test_clipped_share_counts_dimensions_at_the_bound():
  encoder = _encoder(_box((2,)), clip=1.5)
  encoder.update(*_all_valid([[-1.0, -1.0], [1.0, 1.0]]))
  observ = tf.constant([[0.0, 0.0], [1.6, 0.0], [-9.0, 9.0]])
  np.testing.assert_array_equal(encoder.clipped(observ), [0, 0.5, 1])
