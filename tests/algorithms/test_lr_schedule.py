"""Learning rate schedules."""

import numpy as np
import pytest
import tensorflow as tf

from agents.algorithms import lr_schedule
from tests.support import modes


def _rate(schedule, progress=0.0):
  return schedule.rate(tf.constant(progress)).numpy()


def _adapt(schedule, kl, progress=0.0):
  schedule.adapt(tf.constant(kl), tf.constant(progress))


def test_constant_rate_does_not_change():
  schedule = lr_schedule.LearningRateSchedule("constant", 3e-4, 0.01)
  for kl, progress in ((1.0, 0.0), (0.0, 0.5), (0.01, 1.0)):
    _adapt(schedule, kl)
    assert _rate(schedule, progress) == np.float32(3e-4)


@pytest.mark.parametrize(
  "progress, expected", [(0.0, 3e-4), (0.25, 2.25e-4), (0.5, 1.5e-4), (1.0, 0.0), (1.1, 0.0)]
)
def test_linear_rate_falls_to_zero_over_the_budget(progress, expected):
  schedule = lr_schedule.LearningRateSchedule("linear", 3e-4, 0.01)
  _adapt(schedule, 1.0)
  np.testing.assert_allclose(_rate(schedule, progress), expected, rtol=1e-6)


def _kl_adaptive(initial):
  return lr_schedule.LearningRateSchedule("kl_adaptive", initial, kl_target=0.01)


@modes.eager_and_compiled
@pytest.mark.parametrize(
  "kl, factor",
  [
    (0.0, 1.5),
    (0.0049, 1.5),
    (0.0051, 1),
    (0.01, 1),
    (0.0199, 1),
    (0.0201, 1 / 1.5),
    (10.0, 1 / 1.5),
  ],
)
def test_kl_adaptive_rate_changes_outside_the_target_range(prepare, kl, factor):
  schedule = _kl_adaptive(3e-4)
  prepare(schedule.adapt)(tf.constant(kl), tf.constant(0.9))
  np.testing.assert_allclose(_rate(schedule), factor * 3e-4, rtol=1e-6)


def test_kl_adaptive_rate_accumulates_and_ignores_progress():
  schedule = _kl_adaptive(1e-3)
  for kl in (1.0, 1.0, 0.0, 0.01, 1.0):
    _adapt(schedule, kl)
  for progress in (0.0, 1.0):
    np.testing.assert_allclose(_rate(schedule, progress), 1e-3 / 1.5**2, rtol=1e-5)


@pytest.mark.parametrize("kl", [0.0, 1.0])
def test_kl_adaptive_rate_stays_within_bounds_and_recovers(kl):
  schedule = _kl_adaptive(1e-3)
  for _ in range(200):
    _adapt(schedule, kl)
  bound = _rate(schedule)
  assert 1e-7 < bound < 1
  _adapt(schedule, kl)
  assert _rate(schedule) == bound
  _adapt(schedule, 1 - kl)
  np.testing.assert_allclose(_rate(schedule), bound / 1.5 if kl == 0 else bound * 1.5, rtol=1e-6)


@modes.eager_and_compiled
@pytest.mark.parametrize(
  "progress, kl, factor",
  [
    (0.0, 0.0049, 1.5),
    (0.0, 0.0201, 1 / 1.5),
    (0.75, 0.0012, 1.5),
    (0.75, 0.0013, 1),
    (0.75, 0.0049, 1),
    (0.75, 0.0051, 1 / 1.5),
    (1.0, 1e-6, 1 / 1.5),
    (1.1, 1e-6, 1 / 1.5),
  ],
)
def test_target_of_kl_adaptive_linear_falls_to_zero(prepare, progress, kl, factor):
  schedule = lr_schedule.LearningRateSchedule("kl_adaptive_linear", 3e-4, kl_target=0.01)
  prepare(schedule.adapt)(tf.constant(kl), tf.constant(progress))
  np.testing.assert_allclose(_rate(schedule, progress), factor * 3e-4, rtol=1e-6)


def test_variables_contain_the_complete_state():
  schedule = _kl_adaptive(1e-3)
  _adapt(schedule, 1.0)
  copy = _kl_adaptive(5e-3)
  for source, target in zip(schedule.variables, copy.variables, strict=True):
    target.assign(source)
  assert _rate(copy) == _rate(schedule) != np.float32(1e-3)
