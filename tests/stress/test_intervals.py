"""The intervals agree with formulas and with SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from agents.stress import intervals


def _pairs(both, first, second, neither):
  """Returns paired outcomes with the given numbers of pairs."""
  counts = [both, first, second, neither]
  return np.repeat([1, 1, 0, 0], counts) == 1, np.repeat([1, 0, 1, 0], counts) == 1


def _wilson(successes, total):
  z, share = stats.norm.ppf(0.975), successes / total
  center = (share + z**2 / (2 * total)) / (1 + z**2 / total)
  half = math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) * z / (1 + z**2 / total)
  return center - half, center + half


@pytest.mark.parametrize("successes, total", [(0, 20), (7, 20), (20, 20), (81, 263)])
def test_share_has_the_interval_of_wilson(successes, total):
  expected = (successes / total, *_wilson(successes, total))
  assert intervals.share(np.arange(total) < successes) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
  "e, f, g, h", [(36, 12, 2, 0), (9, 8, 3, 0), (14, 5, 0, 22), (2, 9, 8, 1), (5, 0, 0, 0)]
)
def test_difference_of_shares_has_the_interval_of_newcombe(e, f, g, h):
  """Computes method 10 from the four counts, as in the publication."""
  n = e + f + g + h
  (low1, high1), (low2, high2) = _wilson(e + f, n), _wilson(e + g, n)
  down1, up1 = (e + f) / n - low1, high1 - (e + f) / n
  down2, up2 = (e + g) / n - low2, high2 - (e + g) / n
  product = (e + f) * (g + h) * (e + g) * (f + h)
  excess = e * h - f * g
  corrected = excess - n / 2 if excess > n / 2 else min(excess, 0)
  phi = corrected / math.sqrt(product) if product else 0
  theta = (f - g) / n
  expected = (
    theta,
    theta - math.sqrt(down1**2 - 2 * phi * down1 * up2 + up2**2),
    theta + math.sqrt(down2**2 - 2 * phi * down2 * up1 + up1**2),
  )
  outcomes, control = _pairs(e, f, g, h)
  assert intervals.share_difference(outcomes, control) == pytest.approx(expected, abs=1e-12)
  value, low, high = intervals.share_difference(control, outcomes)
  assert (-value, -high, -low) == pytest.approx(expected, abs=1e-12)


def test_difference_of_shares_contains_the_true_difference_in_95_percent_of_samples():
  rng, contained = np.random.default_rng(0), 0
  truth = 0.7 * 0.2 + 0.3 * 0.3 - 0.7
  for _ in range(200):
    control = rng.random(20) < 0.7
    # The outcomes depend on those of the control group.
    outcomes = np.where(control, rng.random(20) < 0.2, rng.random(20) < 0.3)
    _, low, high = intervals.share_difference(outcomes, control)
    contained += low <= truth <= high
  assert 0.92 <= contained / 200 <= 0.99


def test_mean_has_the_interval_of_student():
  values = np.array([1.0, 4.0, 4.5, 9.0, -2.0])
  expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
  assert intervals.mean(values) == pytest.approx((3.3, *expected))
  assert intervals.mean(np.full(5, 1000.0)) == (1000, 1000, 1000)
