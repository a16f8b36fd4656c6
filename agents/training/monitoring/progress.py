"""Console output of a run: lines and, on a terminal, a progress bar."""

import datetime
import sys
import time
from typing import Any, TextIO

import tqdm

from agents.training.monitoring import time_usage


class Progress:
  """Shows phase, speed, latest scores and remaining time.

  Attributes:
    bar: Progress bar of the training steps.

  Args:
    steps: Training steps of the whole run.
    done: Training steps completed before this process started.
  """

  def __init__(self, steps: int, done: int):
    self._steps = steps
    self._first = done
    self._start = time.monotonic()
    self.bar = tqdm.tqdm(
        total=steps, initial=done, unit=" steps", unit_scale=True,
        dynamic_ncols=True, disable=None)  # Disabled without a terminal.
    self._scores: dict[str, str] = {}

  def forecast(self, minutes: float):
    """Prints the budget and the expected duration.

    Args:
      minutes: Expected duration of the remaining steps.
    """
    done = f", {self._first:,} of them completed before" if self._first else ""
    _print(f"budget    {self._steps:,} steps{done}; about {minutes:.1f} "
           "minutes from now")

  def report(self, row: dict[str, Any]):
    """Shows a row of `metrics.jsonl`.

    Args:
      row: Fields of the row.
    """
    phase, step = row["phase"], row["step"]
    score = ("no episode ended" if row["return_mean"] is None
             else f"{row['return_mean']:.1f}")
    self._scores[phase] = score
    self.bar.set_postfix(self._scores)
    speed = time_usage.describe_speed(row)
    if self.bar.disable:
      columns = [f"{phase:5}", f"step {step:,}/{self._steps:,}",
                 f"return {score}", speed, self._time_left(step)]
      _print("   ".join(filter(None, columns)))
    elif "step_limit" in row:
      _print(f"{phase:5}   step {step:,}   {speed}")
    if "step_limit" in row:
      _print(f"{phase:5}   {time_usage.describe_shares(row)}")

  def _time_left(self, step: int) -> str:
    """Returns the expected duration of the remaining steps, "" if unknown."""
    if step == self._first:
      return ""
    seconds_per_step = (time.monotonic() - self._start) / (step - self._first)
    seconds = round(max(0, self._steps - step) * seconds_per_step)
    return f"{datetime.timedelta(seconds=seconds)} left"


def warn(text: str):
  """Prints a warning on stderr.

  Args:
    text: Warning in one line.
  """
  _print(f"Warning, {text}", sys.stderr)


def _print(text: str, file: TextIO | None = None):
  """Prints a line; if a progress bar is shown, prints above the bar."""
  with tqdm.tqdm.external_write_mode(file):
    print(text, file=file, flush=True)
