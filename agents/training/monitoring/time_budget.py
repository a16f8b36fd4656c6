"""Where each second goes, and how near the limit of the machine a run is."""

from __future__ import annotations

import time

PARTS = ("stepping", "crossing", "inference", "exchange", "learning",
          "evaluation", "compiling", "rest")


class TimeBudget:
  """Accounts for the seconds since it was made.

  The limit is what the workers could do at most: steps per second if all of
  them did nothing but step environments, at the speed they had.
  """

  def __init__(self):
    self._start = time.monotonic()
    self._seconds = dict.fromkeys(PARTS, 0.0)
    self._steps = 0
    self._least_seconds = 0.0

  def spend(self, name: str, seconds: float):
    """Account for a part of the time."""
    self._seconds[name] += seconds

  def train(self, steps: int, seconds: dict[str, float], least_seconds: float):
    """Account for an update.

    Args:
      steps: Of all environments together.
      seconds: What they took, by name.
      least_seconds: What they would have taken at the limit.
    """
    self._steps += steps
    self._least_seconds += least_seconds
    for name, value in seconds.items():
      self.spend(name, value)

  def row(self) -> dict[str, float | None]:
    """Return speed, limit, and the share of each part of the time.

    Compiling and evaluating don't count as training; what is not accounted for
    is bookkeeping and does. Speed and limit are None without any update.
    """
    total = time.monotonic() - self._start
    spent = self._seconds
    rest = total - sum(spent.values())
    speed = limit = None
    if self._steps:
      training = total - spent["evaluation"] - spent["compiling"]
      speed = self._steps / training
      if self._least_seconds:  # As far as a backend of the user's own says.
        limit = self._steps / self._least_seconds
    shares = {f"{name}_share": seconds / total
              for name, seconds in {**spent, "rest": rest}.items()}
    return {"steps_per_second": speed, "step_limit": limit,
            "limit_share": speed / limit if speed and limit else None, **shares}


def total(rows: list[dict]) -> dict[str, float | None]:
  """Return one row for many, from the beginning of a run.

  Args:
    rows: What `TimeBudget.row` returned, with `step` and `seconds` of the run.
  """
  last = [{"step": 0, "seconds": 0.0}, *rows[:-1]]
  steps = [row["step"] - before["step"] for row, before in zip(rows, last)]
  seconds = [
      row["seconds"] - before["seconds"] for row, before in zip(rows, last)]
  def rate(name):
    timed = [(amount, row[name]) for amount, row in zip(steps, rows)
             if row[name] is not None]
    took = sum(amount / speed for amount, speed in timed)
    return sum(amount for amount, _ in timed) / took if took else None
  shares = {f"{name}_share": sum(
      span * row.get(f"{name}_share", 0.0) for span, row in zip(seconds, rows))
      / max(sum(seconds), 1e-9) for name in PARTS}
  speed, limit = rate("steps_per_second"), rate("step_limit")
  return {"steps_per_second": speed, "step_limit": limit,
          "limit_share": speed / limit if speed and limit else None, **shares}


def text(row: dict) -> str:
  """Return a sentence of what `TimeBudget.row` says."""
  parts = [f"{name} {row[f'{name}_share']:.0%}" for name in PARTS
           if row.get(f"{name}_share", 0.0) >= 0.005]
  limit = "" if row["step_limit"] is None else (
      f"; at {row['limit_share']:.2f} of the {row['step_limit']:,.0f} steps/s "
      "that its workers step at most")
  return ", ".join(parts) + limit
