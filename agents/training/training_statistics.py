"""Counts what training episodes scored, from one report to the next."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from agents.training import epoch_result


@dataclasses.dataclass
class TrainingStatistics:
  """Of the whole episodes since the last report."""

  scores: list[float] = dataclasses.field(default_factory=list)
  lengths: list[int] = dataclasses.field(default_factory=list)
  reward_parts: list[dict[str, float]] = dataclasses.field(
      default_factory=list)

  def add(self, epoch: epoch_result.Epoch):
    """Count an epoch's episodes."""
    self.scores += epoch.scores
    self.lengths += epoch.lengths
    self.reward_parts += epoch.reward_parts

  def row(self) -> dict[str, Any]:
    """Return the fields of a report, see `summarize`."""
    return summarize(self.scores, self.lengths)

  def mean_reward_parts(self) -> dict[str, float]:
    """Return the mean of each part of the reward, by its name."""
    names = sorted(set().union(*self.reward_parts))
    return {name.removeprefix("reward_"): float(np.mean(
        [parts.get(name, 0.0) for parts in self.reward_parts]))
            for name in names}


def summarize(scores: list[float], lengths: list[int]) -> dict[str, Any]:
  """Return the fields that describe finished episodes, null without any."""
  def apply(function, values):
    return float(function(values)) if values else None
  return {
      "episodes": len(scores),
      "return_mean": apply(np.mean, scores),
      "return_std": apply(np.std, scores),
      "return_min": apply(np.min, scores),
      "return_max": apply(np.max, scores),
      "length_mean": apply(np.mean, lengths)}
