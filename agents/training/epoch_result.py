"""Result of one training epoch, and statistics of its episodes."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from agents.environments.data import episode_data
from agents.environments.making import domain_randomization

METRICS = "metrics/"
# TensorBoard groups of the numbers in infos, by the beginning of their keys.
_GROUPS = {
  "reward_": "reward_parts/",
  domain_randomization.PREFIX: "randomization/",
  "metric_": METRICS,
}


class Samples(NamedTuple):
  """T steps of B environments, and N rows of the batch in the update."""

  observ: tf.Tensor  # [T, B, ...], before the action.
  action: tf.Tensor  # [T, B, ...], as sampled (not clipped).
  valid: tf.Tensor  # [T, B] bool, false if the environment waited or failed.
  ended: tf.Tensor  # [T, B] bool, last step of an episode.
  advantage: tf.Tensor  # [N], in units of scaled reward.
  learned: tf.Tensor  # [N] bool, false for padding.


class Epoch(NamedTuple):
  """Metrics, episodes and times of one epoch of collecting and learning."""

  metrics: dict[str, float]
  gradient_steps: int
  finite_steps: int  # Gradient steps with finite gradients.
  finite_weights: bool  # Whether all weights are finite after the update.
  episodes: list[episode_data.Episode]  # Ended episodes, in order of time.
  steps: int  # Valid training steps, summed over all environments.
  seconds: dict[str, float]  # Wall-clock time by part; see `time_usage.PARTS`.
  busy_seconds: float  # Stepping time without the idle time of workers.
  samples: Samples


@dataclasses.dataclass
class Statistics:
  """Scores, lengths and infos of episodes since the last report.

  Episodes that were truncated to stagger the environments are excluded.
  """

  scores: list[float] = dataclasses.field(default_factory=list)
  lengths: list[int] = dataclasses.field(default_factory=list)
  # Reward parts and other numbers with a prefix in `_GROUPS`, by their keys in
  # infos.
  reward_parts: list[dict[str, float]] = dataclasses.field(default_factory=list)

  def add(self, episodes: Iterable[episode_data.Episode]) -> None:
    """Adds episodes.

    Args:
      episodes: Ended episodes.
    """
    for episode in episodes:
      if not episode.info.get("cut_short"):
        self.scores.append(episode.score)
        self.lengths.append(episode.length)
        others = {
          key: float(value)
          for key, value in episode.info.items()
          if key.startswith((domain_randomization.PREFIX, "metric_"))
        }
        self.reward_parts.append({**episode.info["reward_parts"], **others})

  def row(self) -> dict[str, Any]:
    """Returns the fields of `metrics.jsonl` that describe episodes.

    Returns:
      Number of episodes, and statistics. Without any episode, the statistics
      are None.
    """

    def apply(function: Callable[[list], Any], values: list) -> float | None:
      return float(function(values)) if values else None

    return {
      "episodes": len(self.scores),
      "return_mean": apply(np.mean, self.scores),
      "return_std": apply(np.std, self.scores),
      "return_min": apply(np.min, self.scores),
      "return_max": apply(np.max, self.scores),
      "length_mean": apply(np.mean, self.lengths),
    }

  def mean_infos(self) -> dict[str, float]:
    """Returns means over the episodes by TensorBoard tag.

    Returns:
      Means of the reward parts, such as "reward_parts/forward", of the values
      of domain randomization, such as "randomization/mass", and of the metrics
      of the task, such as "metrics/survived".
    """
    return {
      tag + key.removeprefix(prefix): float(
        np.mean([numbers.get(key, 0.0) for numbers in self.reward_parts])
      )
      for prefix, tag in _GROUPS.items()
      for key in sorted(set().union(*self.reward_parts))
      if key.startswith(prefix)
    }


def statistics(episodes: Iterable[episode_data.Episode]) -> Statistics:
  """Returns the statistics of episodes.

  Args:
    episodes: Ended episodes.
  """
  result = Statistics()
  result.add(episodes)
  return result


def merged(parts: Iterable[Statistics]) -> Statistics:
  """Returns the statistics of all episodes in ascending order of scores.

  Args:
    parts: Statistics of some of the episodes each.
  """
  rows = sorted(
    (row for part in parts for row in zip(part.scores, part.lengths, part.reward_parts)),
    key=lambda row: row[:2],
  )
  return Statistics(*map(list, zip(*rows)))
