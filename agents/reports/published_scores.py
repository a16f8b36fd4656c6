"""Published scores of PPO on MuJoCo tasks, for comparison.

The table published_scores.csv contains the highest known scores for one, three
and about ten million steps. Each row names the document, the place in it, the
version of the publication, and its date. The protocols differ. Tianshou and
XuanCe take the maximum of the mean curve of all seeds. The zoo of
Stable-Baselines3 (SB3) evaluates the final model of one run with the mean
action. The scores of rl_games were read from published curves.
"""

import csv
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple


class PublishedScore(NamedTuple):
  """One row of the table."""

  steps: int  # Budget in environment steps.
  score: float  # Undiscounted return of an episode.
  source: str  # Library, version of the task, and number of runs.

  def reached_by(self, scores: Sequence[float]) -> str:
    """Returns the share of the scores that reach this score, such as "80 %".

    Args:
      scores: Scores of runs with the same task and budget.
    """
    return f"{100 * sum(score >= self.score for score in scores) / len(scores):.0f} %"


def up_to(task: str, steps: int) -> list[PublishedScore]:
  """Returns the published scores of a task for budgets up to `steps`.

  Scores of all versions of a task are returned, although rewards differ: v5
  adds contact costs to Ant and Humanoid, and gives the healthy reward only in
  healthy states.

  Args:
    task: Result of `results.task`. A task with changed settings has no scores.
    steps: Budget in environment steps. Published budgets may exceed `steps` by
      a tenth.

  Returns:
    Scores of the task, in the order of their budgets.
  """
  text = pathlib.Path(__file__).with_suffix(".csv").read_text()
  return [
    PublishedScore(int(row["steps"]), float(row["score"]), row["source"])
    for row in csv.DictReader(text.splitlines())
    if re.fullmatch(rf"{row['task']}-v\d+", task) and int(row["steps"]) <= 1.1 * steps
  ]


def best(task: str, steps: int) -> PublishedScore | None:
  """Returns the highest published score for the largest budget up to `steps`.

  Args:
    task: Result of `results.task`.
    steps: Budget in environment steps.

  Returns:
    The score, or None if the table has no score for this task and budget.
  """
  return max(
    up_to(task, steps), default=None, key=lambda published: (published.steps, published.score)
  )
