"""Estimates shares and means with 95 % intervals, also for paired episodes."""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

_CONFIDENCE = 0.95


class Interval(NamedTuple):
  """An estimate and the bounds of its 95 % interval."""

  value: float
  low: float
  high: float


def share(outcomes: np.ndarray) -> Interval:
  """Estimates a probability by Wilson's score interval (Wilson 1927).

  Args:
    outcomes: Bool array of shape [N].
  """
  result = stats.binomtest(int(outcomes.sum()), len(outcomes))
  low, high = result.proportion_ci(_CONFIDENCE, method="wilson")
  return Interval(float(outcomes.mean()), float(low), float(high))


def share_difference(outcomes: np.ndarray, control: np.ndarray) -> Interval:
  """Estimates the difference of two probabilities from pairs of outcomes.

  This is method 10 of Newcombe (1998, "Improved confidence intervals for the
  difference between binomial proportions based on paired data"). It combines
  the Wilson intervals of both shares p and q with their correlation phi:

      low = p - q - sqrt(a^2 - 2 phi a b + b^2)
      a = p - low of p
      b = high of q - q

  Args:
    outcomes: Bool array of shape [N].
    control: Outcomes of the control group with the same seeds, [N].
  """
  p, q = share(outcomes), share(control)
  phi = _correlation(outcomes, control)

  def distance(a: float, b: float) -> float:
    return math.sqrt(max(0.0, a**2 - 2 * phi * a * b + b**2))

  difference = p.value - q.value
  return Interval(
    difference,
    difference - distance(p.value - p.low, q.high - q.value),
    difference + distance(p.high - p.value, q.value - q.low),
  )


def _correlation(outcomes: np.ndarray, control: np.ndarray) -> float:
  """Returns phi with the continuity correction of Newcombe (1998)."""
  table = [np.sum((outcomes == x) & (control == y)) for x in (True, False) for y in (True, False)]
  both, first, second, neither = map(float, table)
  product = (both + first) * (second + neither) * (both + second) * (first + neither)
  excess = both * neither - first * second
  if excess > 0:
    excess = max(excess - len(outcomes) / 2, 0.0)
  return excess / math.sqrt(product) if product else 0.0


def mean(values: np.ndarray) -> Interval:
  """Estimates a mean by Student's t interval.

  Args:
    values: Array of shape [N], N >= 2. For a paired difference, the differences
      of the pairs.
  """
  center = float(np.mean(values))
  quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, len(values) - 1)
  half = float(quantile * np.std(values, ddof=1) / math.sqrt(len(values)))
  return Interval(center, center - half, center + half)
