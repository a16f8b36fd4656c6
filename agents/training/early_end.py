"""Ends a run before its budget is used up."""

import dataclasses
import json
import math
import pathlib
import time

from agents import config as config_lib

_NUM_EVALUATIONS = 3  # Number of evaluations whose mean is compared.


@dataclasses.dataclass
class EarlyEnd:
  """Conditions under which a run ends early.

  Args:
    score: Mean return of the last three evaluations, or None.
    minutes: Minutes after the creation of this object, or None.

  Raises:
    ConfigError: If a number is out of range.
  """

  score: float | None = None
  minutes: float | None = None

  def __post_init__(self) -> None:
    if self.minutes is not None and not 0 < self.minutes < math.inf:
      raise config_lib.ConfigError(f"--minutes must be positive. Received: {self.minutes:g}.")
    if self.score is not None and not math.isfinite(self.score):
      raise config_lib.ConfigError(f"--until must be a finite number. Received: {self.score:g}.")
    self._start = time.monotonic()

  def reason(self, metrics: pathlib.Path, has_evaluated: bool) -> str:
    """Returns why the run ends now, or "" if it continues.

    Args:
      metrics: Path of the run's metrics.jsonl.
      has_evaluated: Whether the policy has just been evaluated.
    """
    if self.minutes is not None and time.monotonic() - self._start >= 60 * self.minutes:
      return f"{self.minutes:g} minutes are over"
    if self.score is not None and has_evaluated:
      scores = _scores(metrics)[-_NUM_EVALUATIONS:]
      mean = sum(scores) / len(scores) if scores else float("-inf")
      if len(scores) == _NUM_EVALUATIONS and mean >= self.score:
        return f"the last {_NUM_EVALUATIONS} evaluations have the mean return {mean:,.6g}"
    return ""


def _scores(metrics: pathlib.Path) -> list[float]:
  """Returns the mean returns of all evaluations of a run."""
  rows = map(json.loads, metrics.read_text().splitlines())
  return [
    row["return_mean"] for row in rows if row["phase"] == "eval" and row["return_mean"] is not None
  ]
