"""Shares of the wall-clock time, and speed relative to its limit.

The limit is the speed of workers that step environments without any pause.
"""

import time
from typing import Any

import numpy as np

PARTS = (
  "stepping",
  "crossing",
  "inference",
  "exchange",
  "learning",
  "evaluation",
  "compiling",
  "rest",
)


class TimeUsage:
  """Adds up the wall-clock time of each part since the object was created.

  Attributes:
    seconds: Wall-clock time of each part, by name.
  """

  def __init__(self) -> None:
    self.seconds = dict.fromkeys(PARTS, 0.0)
    self._start = time.monotonic()
    self._steps = 0
    self._busy_seconds = 0.0

  def add(self, steps: int, seconds: dict[str, float], busy_seconds: float) -> None:
    """Adds the time of an epoch.

    Args:
      steps: Training steps, summed over all environments.
      seconds: Wall-clock time of each part, by name.
      busy_seconds: Stepping time without the idle time of workers; 0 if
        unknown.

    Raises:
      KeyError: If a part is unknown.
    """
    self._steps += steps
    self._busy_seconds += busy_seconds
    for name, value in seconds.items():
      self.seconds[name] += value

  def row(self) -> dict[str, float | None]:
    """Returns the speed, its limit, and each part's share of the time.

    The speed excludes compilation and evaluation. "rest" is the time outside
    of all other parts.

    Returns:
      Fields of `metrics.jsonl`. Speeds are in steps per second, or None if no
      epoch was added.
    """
    total, spent = time.monotonic() - self._start, self.seconds
    speed = limit = None
    if self._steps:
      speed = self._steps / (total - spent["evaluation"] - spent["compiling"])
      if self._busy_seconds:  # Some custom backends measure no times.
        limit = self._steps / self._busy_seconds
    return _row(
      speed,
      limit,
      {
        **{name: seconds / total for name, seconds in spent.items()},
        "rest": (total - sum(spent.values())) / total,
      },
    )


def total(rows: list[dict[str, Any]]) -> dict[str, float | None]:
  """Combines consecutive rows into one row with averages over the total time.

  Args:
    rows: Training rows of `metrics.jsonl` from the start of a run.

  Returns:
    The fields of `TimeUsage.row`.
  """
  steps, seconds = (np.diff([0, *(row[name] for row in rows)]) for name in ("step", "seconds"))

  def mean_speed(name: str) -> float | None:
    timed = [(num_steps, row[name]) for num_steps, row in zip(steps, rows) if row[name] is not None]
    duration = sum(num_steps / speed for num_steps, speed in timed)
    return sum(num_steps for num_steps, _ in timed) / duration if timed else None

  return _row(
    mean_speed("steps_per_second"),
    mean_speed("step_limit"),
    {
      name: sum(span * row.get(f"{name}_share", 0.0) for span, row in zip(seconds, rows))
      / max(sum(seconds), 1e-9)
      for name in PARTS
    },
  )


def describe_shares(row: dict[str, Any]) -> str:
  """Returns the shares of the time as text.

  Args:
    row: Result of `TimeUsage.row`, or a row of `metrics.jsonl`.

  Returns:
    For example "stepping 40%, learning 60%".
  """
  return ", ".join(
    f"{name} {row[f'{name}_share']:.0%}" for name in PARTS if row.get(f"{name}_share", 0.0) >= 0.005
  )


def describe_speed(row: dict[str, Any]) -> str:
  """Returns the speed of training as text, "" if it is unknown.

  Args:
    row: Result of `TimeUsage.row`, or a row of `metrics.jsonl`.

  Returns:
    For example "20,000 steps/s; workers that only step reach 40,000".
  """
  if not row.get("steps_per_second"):
    return ""
  limit = row.get("step_limit") and (f"; workers that only step reach {row['step_limit']:,.0f}")
  return f"{row['steps_per_second']:,.0f} steps/s{limit or ''}"


def _row(
  speed: float | None, limit: float | None, shares: dict[str, float]
) -> dict[str, float | None]:
  """Returns the fields of a row from speeds and shares of the time."""
  return {
    "steps_per_second": speed,
    "step_limit": limit,
    "limit_share": speed / limit if speed and limit else None,
    **{f"{name}_share": share for name, share in shares.items()},
  }
