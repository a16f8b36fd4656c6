"""Means over valid elements, compared with NumPy on the valid elements."""

import numpy as np
import pytest
import tensorflow as tf

from agents.ops import masked
from tests.support import modes


def _values(shape, seed=0):
  """Returns values, their validity, and only the valid values, in float64."""
  rng = np.random.default_rng(seed)
  valid = rng.random(shape) < 0.6
  values = (3 + 2 * rng.normal(size=shape)).astype(np.float32)
  assert 1 < valid.sum() < valid.size
  values[~valid] = 1e6  # Invalid elements must have no effect.
  return values, valid, values[valid].astype(np.float64)


def _weight(valid):
  return masked.weight(tf.constant(valid))


_each_shape = pytest.mark.parametrize("shape", [(20,), (4, 6)])


@modes.eager_and_compiled
@_each_shape
def test_mean_and_variance_include_only_valid_elements(prepare, shape):
  for seed in range(3):
    values, valid, chosen = _values(shape, seed)
    for function, expected in ((masked.mean, chosen.mean()), (masked.variance, chosen.var())):
      result = prepare(function)(tf.constant(values), _weight(valid))
      assert result.shape == ()
      np.testing.assert_allclose(result, expected, rtol=1e-5)


@modes.eager_and_compiled
@_each_shape
def test_normalizing_gives_mean_zero_and_std_one(prepare, shape):
  values, valid, chosen = _values(shape)
  result = prepare(masked.normalize)(tf.constant(values), _weight(valid))
  assert result.shape == shape
  np.testing.assert_allclose(
    result.numpy()[valid], (chosen - chosen.mean()) / chosen.std(), rtol=1e-4, atol=1e-5
  )


@_each_shape
def test_weights_are_equal_and_sum_to_one(shape):
  _, valid, chosen = _values(shape)
  np.testing.assert_allclose(_weight(valid), valid / len(chosen), rtol=1e-6)


def test_weights_sum_to_one_along_an_axis_with_valid_elements():
  valid = np.array([[True, True], [True, False], [False, False]])
  np.testing.assert_allclose(
    masked.weight(tf.constant(valid), axis=1), [[0.5, 0.5], [1, 0], [0, 0]]
  )


@pytest.mark.parametrize(
  "valid, expected", [([], 0), ([0], 1), ([0, 1, 2], 3), ([1, 4], 5), ([7], 8)]
)
def test_valid_length_ends_with_the_last_valid_row(valid, expected):
  length = masked.valid_length(tf.constant(np.isin(np.arange(8), valid)))
  assert length == expected and length.dtype == tf.int32


@pytest.mark.parametrize("values", [[5.0, 5.0, 9.0], [0.0, 0.0, 1e6]])
def test_equal_values_are_normalized_to_zero(values):
  weight = _weight([True, True, False])
  result = masked.normalize(tf.constant(values), weight)
  np.testing.assert_array_equal(result[:2], 0)
  assert masked.variance(tf.constant(values), weight) == 0


def test_rewriting_invalid_elements_changes_nothing():
  values, valid, _ = _values((20,))
  other = np.where(valid, values, -77.0).astype(np.float32)
  for function in (masked.mean, masked.variance):
    np.testing.assert_array_equal(
      *[function(tf.constant(x), _weight(valid)) for x in (values, other)]
    )
