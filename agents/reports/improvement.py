"""Estimates the probability that one group of runs scores above another.

The probability of improvement is a statistic that Agarwal et al. (2021, "Deep
Reinforcement Learning at the Edge of the Statistical Precipice") recommend:

    P(X > Y) = mean over tasks of U(X, Y) / (N * M)

U is the Mann-Whitney statistic of the scores of N runs X and M runs Y: the
number of pairs in which X has the higher score, where ties count one half.
"""

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from agents.reports import curves, results

_NUM_RESAMPLES = 2000  # Number of bootstrap samples.


class Improvement(NamedTuple):
  """Probability that a run of X scores above a run of Y, 95 % interval."""

  probability: float
  low: float
  high: float

  @property
  def reverse(self) -> "Improvement":
    """The same statement with X and Y exchanged."""
    return Improvement(1 - self.probability, 1 - self.high, 1 - self.low)


def estimate(tasks: Sequence[tuple[np.ndarray, np.ndarray]]) -> Improvement:
  """Estimates the probability of improvement of X over Y.

  The bootstrap is stratified: it resamples the runs of each group on each task
  separately. The interval has length zero if all scores of one group are above
  all scores of the other.

  Args:
    tasks: For each task, the scores of X, [N], and the scores of Y, [M]. N and
      M are at least 2, and may differ between tasks.

  Returns:
    Mean of the probabilities on all tasks, with its bootstrap interval.
  """
  rng = np.random.default_rng(0)

  def shares(scores: np.ndarray) -> np.ndarray:
    """Returns the share of each run in each bootstrap sample."""
    num_runs = len(scores)
    return rng.multinomial(num_runs, np.full(num_runs, 1 / num_runs), _NUM_RESAMPLES) / num_runs

  wins = [(1 + np.sign(x[:, None] - y)) / 2 for x, y in tasks]
  resampled = [
    ((shares(x) @ wins_on_task) * shares(y)).sum(1) for (x, y), wins_on_task in zip(tasks, wins)
  ]
  low, high = np.quantile(np.mean(resampled, 0), (0.025, 0.975))
  return Improvement(float(np.mean([each.mean() for each in wins])), float(low), float(high))


def pairs(tasks: Iterable[dict[str, np.ndarray]]) -> dict[tuple[str, str], Improvement]:
  """Compares all groups that have at least two runs on a common task.

  Args:
    tasks: For each task, the scores of each group, [S], by name of the group.

  Returns:
    Improvement of the first over the second group, by their names. Contains
    both orders of each pair.
  """
  tasks = [{name: scores for name, scores in task.items() if len(scores) > 1} for task in tasks]
  names = dict.fromkeys(name for task in tasks for name in task)
  found = {}
  for x, y in itertools.combinations(names, 2):
    if common := [(task[x], task[y]) for task in tasks if {x, y} <= task.keys()]:
      found[x, y] = estimate(common)
      found[y, x] = found[x, y].reverse
  return found


def scores(groups: Sequence[results.RunGroup]) -> dict[str, np.ndarray]:
  """Returns the last evaluation scores of the groups on a task.

  Args:
    groups: Groups of runs on the same task.

  Returns:
    Scores of each group, [S], by label.
  """
  return {group.label: curves.final(group.runs, "eval")[1] for group in groups}


def variants(groups: Sequence[results.RunGroup]) -> dict[str, np.ndarray]:
  """Returns the same scores by names that groups on other tasks can share.

  A name is the rest of the label after the words with which the names of all
  runs on the task begin. "cheetah" and "cheetah-paper" become "" and "-paper".

  Args:
    groups: Groups of runs on the same task.
  """
  words = [group.runs[0].name.split("-") for group in groups]
  common = "-".join(os.path.commonprefix(words))
  return {label.removeprefix(common): values for label, values in scores(groups).items()}
