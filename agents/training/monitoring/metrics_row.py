"""Rows of metrics: fields of `metrics.jsonl` and scalars of TensorBoard."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from agents.training import epoch_result

# TensorBoard groups of metrics. All other metrics are in the group "policy".
_GROUPS = {
  "policy_loss": "losses",
  "value_loss": "losses",
  "grad_norm": "losses",
  "policy_grad_norm": "losses",
  "value_grad_norm": "losses",
  "explained_variance": "losses",
  "learning_rate": "losses",
  "value_mean": "losses",
  "observ_mean": "normalization",
  "observ_std": "normalization",
  "observ_clipped": "normalization",
  "reward_scale": "normalization",
}


class MetricsRow(NamedTuple):
  """Metrics of training since the previous report, or of an evaluation."""

  fields: dict[str, Any]  # Line of `metrics.jsonl`.
  scalars: dict[str, float | None]  # TensorBoard values by tag, or None.


def training_row(
  step: int,
  seconds: float,
  statistics: epoch_result.Statistics,
  metrics: dict[str, float],
  performance: dict[str, float | None],
  warnings: Sequence[str],
  restarts: int,
) -> MetricsRow:
  """Returns the row of a report on training.

  Args:
    step: Environment steps so far.
    seconds: Seconds since the start of the run, across resumes.
    statistics: Statistics of the episodes since the previous report.
    metrics: Metrics of the latest update, by name.
    performance: Results of `TimeUsage.row` and `memory.usage`.
    warnings: Warnings of this report.
    restarts: Replaced environments and workers, across resumes.
  """
  groups = {name: _GROUPS.get(name, "policy") for name in metrics}
  infos = statistics.mean_infos()
  return _row(
    "train",
    step,
    seconds,
    statistics,
    {**performance, **infos, "warnings": warnings, "restarts": restarts},
    {
      **{f"{groups[name]}/{name}": value for name, value in metrics.items()},
      "reliability/restarts": restarts,
      **{f"performance/{name}": value for name, value in performance.items()},
      **infos,
    },
  )


def evaluation_row(
  step: int, seconds: float, statistics: epoch_result.Statistics, norms: dict[str, float]
) -> MetricsRow:
  """Returns the row of an evaluation.

  Args:
    step: Environment steps so far.
    seconds: Seconds since the start of the run, across resumes.
    statistics: Statistics of the episodes of the evaluation.
    norms: Result of `layer_norms`; only for TensorBoard.
  """
  task_metrics = {
    tag: value
    for tag, value in statistics.mean_infos().items()
    if tag.startswith(epoch_result.METRICS)
  }
  return _row("eval", step, seconds, statistics, task_metrics, {**norms, **task_metrics})


def _row(
  phase: str,
  step: int,
  seconds: float,
  statistics: epoch_result.Statistics,
  fields: dict[str, Any],
  scalars: dict[str, float | None],
) -> MetricsRow:
  """Returns a row with the metrics that training and evaluation share."""
  episodes = statistics.row()
  return MetricsRow(
    {"phase": phase, "step": step, "seconds": round(seconds, 3), **episodes, **fields},
    {**scalars, "score/return": episodes["return_mean"], "score/length": episodes["length_mean"]},
  )
