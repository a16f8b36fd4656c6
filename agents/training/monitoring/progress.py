"""Tells the user where the run is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import datetime
import sys
import time
from typing import Any

import tqdm

from agents.training.monitoring import time_budget


class Progress:
  """Shows phase, speed, latest score and time left.

  Args:
    steps: Budget.
    done: Steps that are done already.
  """

  def __init__(self, steps: int, done: int):
    self._steps = steps
    self._first = done
    self._start = time.monotonic()
    self._bar = tqdm.tqdm(
        total=steps, initial=done, unit=" steps", unit_scale=True,
        dynamic_ncols=True) if sys.stderr.isatty() else None
    self._scores: dict[str, str] = {}

  def advance(self, done: int):
    """Say that `done` steps are done now."""
    if self._bar is not None:
      self._bar.update(done - self._bar.n)

  def forecast(self, minutes: float):
    """Say how long it will take."""
    text = f"budget    {self._steps:,} steps"
    if self._first:
      text += f", {self._first:,} of them done before"
    text += f"; about {minutes:.1f} minutes from now"
    if self._bar is not None:
      self._bar.write(text)
    else:
      print(text, flush=True)

  def warn(self, text: str):
    """Tell of something that seems wrong."""
    if self._bar is not None:
      self._bar.write(f"Warning, {text}", file=sys.stderr)
    else:
      print(f"Warning, {text}", file=sys.stderr, flush=True)

  def phase(self, name: str):
    if self._bar is not None:
      self._bar.set_description(name)

  def report(self, row: dict[str, Any]):
    """Show a row of `metrics.jsonl`."""
    score = ("no episode ended" if row["return_mean"] is None
             else f"{row['return_mean']:.1f}")
    self._scores[row["phase"]] = score
    if self._bar is not None:
      self._bar.set_postfix(self._scores)
      if "step_limit" in row:
        self._bar.write(f"step {row['step']:,}   {time_budget.text(row)}")
      return
    parts = [f"{row['phase']:5}", f"step {row['step']:,}/{self._steps:,}",
             f"return {score}"]
    if speed := row.get("steps_per_second"):
      parts.append(f"{speed:,.0f} steps/s")
    gained = row["step"] - self._first
    if gained:
      pace = (time.monotonic() - self._start) / gained
      left = round(max(0, self._steps - row["step"]) * pace)
      parts.append(f"{datetime.timedelta(seconds=left)} left")
    if "step_limit" in row:
      parts.append(time_budget.text(row))
    print("   ".join(parts), flush=True)

  def close(self):
    if self._bar is not None:
      self._bar.close()
