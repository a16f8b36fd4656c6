"""Console output of a run: lines and, on a terminal, a progress bar."""

import datetime
import sys
import time
from typing import Any, TextIO

import tqdm


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
    self._done = done
    self._timed: tuple[int, float] | None = None  # Step and time; see forecast.
    self.bar = tqdm.tqdm(
        total=steps, initial=done, unit=" steps", unit_scale=True,
        dynamic_ncols=True, disable=None)  # Disabled without a terminal.
    self._scores: dict[str, str] = {}

  def forecast(self, minutes: float):
    """Prints the budget and the expected duration, after the first update.

    Remaining times are extrapolated from this moment, so they do not contain
    the compilation again.

    Args:
      minutes: Expected duration of the remaining steps.
    """
    self._timed = int(self.bar.n), time.monotonic()
    done = f", {self._done:,} of them completed before" if self._done else ""
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
    speed = row.get("steps_per_second")
    columns = [f"{phase:5}", f"step {step:,}/{self._steps:,}",
               f"return {score}", f"{speed:,.0f} steps/s" if speed else "",
               self._time_left(step) if self.bar.disable else ""]
    _print("   ".join(filter(None, columns)))

  def _time_left(self, step: int) -> str:
    """Returns the expected duration of the remaining steps, "" if unknown."""
    if not self._timed or step <= self._timed[0]:
      return ""
    first, start = self._timed
    seconds_per_step = (time.monotonic() - start) / (step - first)
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
