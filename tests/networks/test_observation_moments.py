"""Moments of observations forget, freeze, or are constant."""

import numpy as np
import pytest
import tensorflow as tf

from agents import config as config_lib
from agents.networks import observation_moments
from tests.support import modes


def _moments(**settings):
  config = config_lib.Config().override({"algorithm.observ_moments": settings})
  return observation_moments.make(config.algorithm)(3)


def _batches(sizes=(7, 1, 64, 20)):
  rng = np.random.default_rng(0)
  return [rng.normal(5 * step, 1 + step, (size, 3)) for step, size in enumerate(sizes)]


def _update(moments, batches, prepare=lambda function: function):
  update = prepare(moments.update)
  for batch in batches:
    update(tf.constant(batch, tf.float32), tf.fill([len(batch)], True))


@modes.compiled_slowly
def test_weights_of_earlier_samples_decay(prepare):
  """Compares with weighted moments of all samples."""
  batches, horizon = _batches(), 30
  moments = _moments(horizon=horizon)
  _update(moments, batches, prepare)
  sizes = [len(batch) for batch in batches]
  later = np.sum(sizes) - np.cumsum(sizes)  # Samples after each batch.
  weight = np.repeat(np.exp(-later / horizon), sizes)
  samples = np.concatenate(batches).astype(np.float32)
  mean = np.average(samples, 0, weight)
  np.testing.assert_allclose(moments.mean, mean, rtol=1e-6)
  std = np.sqrt(np.average((samples - mean) ** 2, 0, weight))
  np.testing.assert_allclose(moments.std, std, rtol=1e-6)


@modes.compiled_slowly
def test_moments_freeze_after_the_update_that_reaches_the_number(prepare):
  batches = _batches()
  frozen, expected = _moments(freeze=8), _moments()
  _update(frozen, batches, prepare)
  _update(expected, batches[:2])
  for name in ("mean", "std", "count"):
    np.testing.assert_allclose(getattr(frozen, name), getattr(expected, name), rtol=1e-6)


def test_checkpoints_contain_the_number_of_samples():
  frozen, copy = _moments(freeze=8), _moments(freeze=8)
  _update(frozen, _batches())
  for source, target in zip(frozen.variables, copy.variables, strict=True):
    target.assign(source)
  _update(copy, _batches())
  np.testing.assert_array_equal(copy.mean, frozen.mean)


@pytest.mark.parametrize("mean, std", [(1, 2), ([1, 2, 3], [0.5, 1, 2]), (0.5, [1, 1, 4])])
def test_constant_moments_never_change(mean, std):
  moments = _moments(mean=mean, std=std)
  _update(moments, _batches())
  assert moments.variables == []
  samples = np.array([[1.0, 2, 30]], np.float32)
  expected = np.clip((samples - np.array(mean)) / np.array(std), -5, 5)
  np.testing.assert_allclose(moments.normalize(tf.constant(samples), 5.0), expected, rtol=1e-6)


@pytest.mark.parametrize(
  "settings, message",
  [
    ({"mean": 0, "std": 0}, "a list of 3 numbers"),
    ({"mean": 0, "std": [1, 1]}, "a list of 3 numbers"),
    ({"mean": "a", "std": 1}, "a list of 3 numbers"),
    ({"mean": float("nan"), "std": 1}, "a list of 3 numbers"),
    ({"mean": 0}, "or `mean` and `std`"),
    ({"mean": 0, "std": 1, "freeze": 3}, "or `mean` and `std`"),
    ({"horizon": 0}, "each a positive number"),
    ({"freeze": "never"}, "each a positive number"),
    ({"decay": 0.9}, "must contain `horizon`"),
  ],
)
def test_invalid_settings_are_errors(settings, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    _moments(**settings)


def test_settings_need_normalization():
  settings = {"algorithm.normalize_observ": False, "algorithm.observ_moments": {"freeze": 3}}
  with pytest.raises(config_lib.ConfigError, match="needs algorithm.normalize_observ=true"):
    config_lib.Config().override(settings)


def test_observations_are_not_normalized_without_moments():
  config = config_lib.Config().override({"algorithm.normalize_observ": False})
  assert observation_moments.make(config.algorithm) is None
