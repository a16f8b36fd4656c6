"""Episodes of a disturbance are compared with the control group by seed."""

import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.data import episode_data
from agents.stress import experiment

_ENV = config_lib.Env("Hopper-v5", max_length=10)


def _condition(lengths, level=None):
  """Returns episodes whose return is three per step."""
  episodes = [
    episode_data.Episode(seed, np.zeros((length, 1)), 3.0 * length, {})
    for seed, length in enumerate(lengths)
  ]
  return experiment.Condition("push" if level else experiment.CONTROL, level, _ENV, episodes)


def test_differences_are_those_of_episodes_with_the_same_seed():
  control, pushed = _condition([10, 10, 4, 10]), _condition([10, 9, 3, 9], 0.5)
  summary = experiment.summarize(pushed, control)
  assert summary.level == 0.5
  assert (summary.survival.value, summary.survival_difference.value) == (0.25, -0.5)
  assert (summary.score.value, summary.score_difference.value) == pytest.approx((23.25, -2.25))
  # The returns differ by 3 on three seeds of four, despite their large spread.
  width = summary.score_difference.high - summary.score_difference.low
  assert width < (summary.score.high - summary.score.low) / 3


def test_first_fall_is_the_shortest_that_the_mildest_level_causes():
  control = _condition([10, 2, 10, 10])
  levels = [_condition([10, 2, 10, 10], 1), _condition([10, 1, 9, 8], 2), _condition([3] * 4, 3)]
  fall = experiment.first_fall(levels, control)
  assert (fall.name, fall.level, fall.episode.seed, fall.episode.length) == ("push", 2, 3, 8)


def test_falls_of_the_control_group_are_not_caused_by_the_disturbance():
  control = _condition([10, 2])
  assert experiment.first_fall([_condition([10, 2], 1), _condition([10, 1], 2)], control) is None


def test_all_falls_count_if_the_control_group_always_falls():
  fall = experiment.first_fall([_condition([6, 5], 1), _condition([2, 2], 2)], _condition([6, 5]))
  assert (fall.level, fall.episode.seed) == (1, 1)
