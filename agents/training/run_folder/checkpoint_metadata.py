"""What a checkpoint knows of a run beside its arrays."""

from __future__ import annotations

import dataclasses
from typing import Any


def complete(step: int, done: dict[str, int], budget: int) -> bool:
  """Return whether a run has used up its budget and been evaluated after."""
  return step >= budget and done["eval_every"] == step


@dataclasses.dataclass
class CheckpointMetadata:
  """Plain data; fields with a default are younger than the others."""

  step: int  # Of all environments together.
  done: dict[str, int]  # Steps of the last report, evaluation, ..., by setting.
  scores: list[float]  # Since the last report, see `tally`.
  lengths: list[int]
  reward_parts: list[dict[str, float]]
  health: dict[str, dict[str, int]]  # See `health`.
  seconds: float  # Of the run so far.
  files: dict[str, int]  # Bytes of each that reports are appended to.
  restarts: int = 0  # Of environments and workers.
  config: dict[str, Any] | None = None  # All settings.
