"""Interquartile means over seeds, with bootstrap intervals.

What to report of few runs, and why: Agarwal et al. 2021, "Deep Reinforcement
Learning at the Edge of the Statistical Precipice".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from agents.reports import results

_POINTS = 60  # Of a curve.
_RESAMPLES = 2000


class Estimate(NamedTuple):
  """Interquartile mean and its 95 % interval, of any shape [...]."""

  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray


class Curve(NamedTuple):
  """How the score of a group of runs rises."""

  x: np.ndarray  # [P] steps or hours.
  score: Estimate  # [P]


def estimate(scores: np.ndarray) -> Estimate:
  """Estimate what a further seed would score.

  Args:
    scores: Of S runs, of shape [S, ...].
  """
  def interquartile(values, axis):
    return stats.trim_mean(values, 0.25, axis=axis)
  mean = interquartile(scores, 0)
  if len(scores) < 2:
    return Estimate(mean, mean, mean)
  low, high = stats.bootstrap(
      (scores,), interquartile, axis=0, n_resamples=_RESAMPLES,
      method="percentile", rng=np.random.default_rng(0)).confidence_interval
  return Estimate(mean, low, high)


def curve(runs: Sequence[results.RunResults], phase: str, unit: str) -> Curve | None:
  """Return score against steps or hours, as far as all runs have come.

  Scores between two reports are interpolated. Against hours a run that is
  finished stays where it is, until the last one is.

  Args:
    runs: That differ in their seeds.
    phase: "eval" for the mean action, "train" for sampled ones.
    unit: "steps" or "hours".
  Returns:
    The curve of those that have any scores, None if there is none.
  """
  series, going = [], []
  for run in runs:
    if rows := run.phase(phase):
      x = [row["step"] if unit == "steps" else row["seconds"] / 3600
           for row in rows]
      series.append((x, [row["return_mean"] for row in rows]))
      if not run.complete:
        going.append(x[-1])
  if not series:
    return None
  first, last = max(x[0] for x, _ in series), min(x[-1] for x, _ in series)
  if unit == "hours":  # What was faster keeps its last score.
    last = min(going) if going else max(x[-1] for x, _ in series)
  grid = np.linspace(first, max(first, last), _POINTS)
  return Curve(grid, estimate(np.array(
      [np.interp(grid, x, scores) for x, scores in series])))


def final(runs: Sequence[results.RunResults], phase: str) -> tuple[int, np.ndarray]:
  """Return the last step that all runs have come to, and their scores there.

  Args:
    runs: That differ in their seeds.
    phase: "eval" or "train".
  Returns:
    The step, and the score of each run that has any until then, of shape [S].
  """
  step = min(run.rows[-1]["step"] for run in runs)
  scores = [[row["return_mean"] for row in run.phase(phase)
             if row["step"] <= step][-1:] for run in runs]
  return step, np.array([score for found in scores for score in found])
