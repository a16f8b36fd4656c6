"""The interval over seeds contains the score of a further run."""

import numpy as np
import pytest

from agents.zoo import score


def test_interval_contains_95_percent_of_further_scores():
  rng = np.random.default_rng(0)
  scores = rng.normal(100, 50, (1000, 6))
  intervals = np.array([score.interval(row[:5]) for row in scores])
  inside = (intervals[:, 0] <= scores[:, 5]) & (scores[:, 5] <= intervals[:, 1])
  assert inside.mean() == pytest.approx(0.95, abs=0.02)


def test_equal_scores_give_one_percent_of_the_mean_on_each_side():
  assert score.interval([500, 500, 500]) == pytest.approx((495, 505))
  assert score.interval([-200, -200, -200]) == pytest.approx((-202, -198))


def test_two_seeds_give_no_interval():
  assert score.interval([1, 2]) is None
