"""Computes interquartile means over seeds, with bootstrap intervals.

These statistics are robust for a small number of runs (Agarwal et al. 2021,
"Deep Reinforcement Learning at the Edge of the Statistical Precipice").
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from agents.reports import results

_NUM_POINTS = 60  # Number of points of a curve.
_NUM_RESAMPLES = 2000  # Number of bootstrap samples.


class Estimate(NamedTuple):
  """Interquartile means with 95 % intervals; three arrays of equal shape."""

  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray


def estimate(scores: np.ndarray) -> Estimate:
  """Estimates the interquartile mean of the scores over seeds.

  Args:
    scores: Array of shape [S, ...] with the scores of S runs.

  Returns:
    Estimate of shape [...]. With a single run, intervals have length zero.
  """

  def interquartile_mean(values: np.ndarray, axis: int) -> np.ndarray:
    return stats.trim_mean(values, 0.25, axis=axis)

  mean = interquartile_mean(scores, 0)
  if len(scores) < 2:
    return Estimate(mean, mean, mean)
  low, high = stats.bootstrap(
    (scores,),
    interquartile_mean,
    axis=0,
    n_resamples=_NUM_RESAMPLES,
    method="percentile",
    rng=np.random.default_rng(0),
  ).confidence_interval
  return Estimate(mean, low, high)


def curve(
  runs: Sequence[results.RunResults], phase: str, unit: str
) -> tuple[np.ndarray, Estimate] | None:
  """Returns the learning curve of runs over steps or hours.

  Scores between two reports are interpolated. The steps of a fork begin at the
  step of its origin. A curve over steps ends where the
  first run ends. A curve over hours ends where the first incomplete run ends,
  or where the last run ends if all runs are complete. Complete runs keep their
  last score until the curve ends.

  Args:
    runs: Runs that differ only in their seeds.
    phase: "eval" for scores of the mean action, "train" for scores of sampled
      actions.
    unit: "steps" or "hours".

  Returns:
    Steps or hours of P points, [P], and the estimated scores at these points,
    [P]. None if no run has scores.
  """
  series, incomplete_ends = [], []
  for run in runs:
    if rows := run.phase(phase):
      start = run.origin[1]
      x = [start + row["step"] if unit == "steps" else row["seconds"] / 3600 for row in rows]
      series.append((x, [row["return_mean"] for row in rows]))
      if not run.complete:
        incomplete_ends.append(x[-1])
  if not series:
    return None
  first, last = max(x[0] for x, _ in series), min(x[-1] for x, _ in series)
  if unit == "hours":
    last = min(incomplete_ends or [max(x[-1] for x, _ in series)])
  grid = np.linspace(first, max(first, last), _NUM_POINTS)
  return grid, estimate(np.array([np.interp(grid, x, scores) for x, scores in series]))


def branch(run: results.RunResults, runs: Sequence[results.RunResults]) -> np.ndarray | None:
  """Returns the line from the curve of a fork's origin to the fork.

  Args:
    run: Any run.
    runs: Runs of the same task, which may contain the origin.

  Returns:
    Steps and scores of the origin at the fork, and of the first evaluation of
    the fork, of shape [2, 2]; None if one of them is missing.
  """
  name, start = run.origin
  origins = [other for other in runs if "/".join(other.path.parts[-2:]) == name]
  rows = run.phase("eval")
  if not (origins and rows and (before := origins[0].phase("eval"))):
    return None
  steps = [origins[0].origin[1] + row["step"] for row in before]
  score = np.interp(start, steps, [row["return_mean"] for row in before])
  return np.array([[start, start + rows[0]["step"]], [score, rows[0]["return_mean"]]])


def final(runs: Sequence[results.RunResults], phase: str) -> tuple[int, np.ndarray]:
  """Returns the last step that all runs reached, and the scores at this step.

  Args:
    runs: Runs that differ only in their seeds.
    phase: "eval" for scores of the mean action, "train" for scores of sampled
      actions.

  Returns:
    The step, and an array with the last score of each run up to this step. Runs
    without a score are left out.
  """
  step = min(run.rows[-1]["step"] for run in runs)
  scores = [[row["return_mean"] for row in run.phase(phase) if row["step"] <= step] for run in runs]
  return step, np.array([run_scores[-1] for run_scores in scores if run_scores])
