"""Metadata of a checkpoint: progress and counters of the run."""

import dataclasses
from typing import Any


def complete(step: int, done: dict[str, int], budget: int) -> bool:
  """Return whether a run used up its budget and evaluated the result.

  Args:
    step: Training steps completed.
    done: Steps of the last actions, see `CheckpointMetadata.done`.
    budget: Training steps of the whole run.
  Returns:
    True if the last evaluation took place after the last step.
  """
  return step >= budget and done["eval_every"] == step


@dataclasses.dataclass
class CheckpointMetadata:
  """JSON-serializable state of the training loop.

  Fields with defaults were added later, so older checkpoints still load.
  """

  step: int  # Training steps completed, summed over all environments.
  # Step of the last report, evaluation, checkpoint and video, by the name of
  # the config field that holds the interval.
  done: dict[str, int]
  scores: list[float]  # Since the last report, see `training_statistics`.
  lengths: list[int]
  reward_parts: list[dict[str, float]]
  health: dict[str, dict[str, int]]  # See `Diagnostics.state`.
  seconds: float  # Wall-clock time since the run started, across resumes.
  files: dict[str, int]  # Bytes of the append-only files, by relative path.
  restarts: int = 0  # Environments and workers replaced so far.
  config: dict[str, Any] | None = None  # All settings, by dotted key.
