"""Statistics of the training episodes between two reports."""

import dataclasses
from typing import Any

import numpy as np

from agents.training import epoch_result


@dataclasses.dataclass
class TrainingStatistics:
  """Scores, lengths and reward parts of episodes since the last report.

  Episodes that were truncated to stagger the environments are excluded.
  """

  scores: list[float] = dataclasses.field(default_factory=list)
  lengths: list[int] = dataclasses.field(default_factory=list)
  reward_parts: list[dict[str, float]] = dataclasses.field(
      default_factory=list)

  def add(self, epoch: epoch_result.Epoch):
    """Add the episodes of an epoch.

    Args:
      epoch: Result of the epoch.
    """
    self.scores += epoch.scores
    self.lengths += epoch.lengths
    self.reward_parts += epoch.reward_parts

  def row(self) -> dict[str, Any]:
    """Return the fields of a report.

    Returns:
      Result of `summarize`.
    """
    return summarize(self.scores, self.lengths)

  def mean_reward_parts(self) -> dict[str, float]:
    """Return the mean per episode of each reward part.

    Returns:
      Means by name, without the prefix "reward_".
    """
    names = sorted(set().union(*self.reward_parts))
    return {name.removeprefix("reward_"): float(np.mean(
        [parts.get(name, 0.0) for parts in self.reward_parts]))
            for name in names}


def summarize(scores: list[float], lengths: list[int]) -> dict[str, Any]:
  """Return the fields of `metrics.jsonl` that describe episodes.

  Args:
    scores: Undiscounted return of each episode.
    lengths: Steps of each episode.
  Returns:
    Number of episodes, and statistics that are None without any episode.
  """
  def apply(function, values):
    return float(function(values)) if values else None
  return {
      "episodes": len(scores),
      "return_mean": apply(np.mean, scores),
      "return_std": apply(np.std, scores),
      "return_min": apply(np.min, scores),
      "return_max": apply(np.max, scores),
      "length_mean": apply(np.mean, lengths)}
