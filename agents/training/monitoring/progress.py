"""Console output of a run: lines and, on a terminal, a progress bar."""

import datetime
import sys
import textwrap
from typing import Any, TextIO

import tqdm

_WIDTH = 100  # Maximum number of columns of a line.


class Progress:
  """Shows phase, speed, latest scores and remaining time.

  Attributes:
    bar: Progress bar of the training steps.

  Args:
    steps: Training steps of the whole run.
    done: Training steps completed before this process started.
  """

  def __init__(self, steps: int, done: int) -> None:
    self._steps = steps
    # Without the remaining time of tqdm, which ignores evaluations.
    self.bar = tqdm.tqdm(
      total=steps,
      initial=done,
      unit_scale=True,
      dynamic_ncols=True,
      disable=None,  # Disabled without a terminal.
      bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]",
    )
    self._scores: dict[str, str] = {}

  def report(self, row: dict[str, Any], seconds_left: float | None = None) -> None:
    """Shows a row of `metrics.jsonl`.

    Args:
      row: Fields of the row.
      seconds_left: Expected duration of the rest of the run, None if unknown.
    """
    phase, speed = row["phase"], row.get("steps_per_second")
    score = "no episode ended" if row["return_mean"] is None else f"{row['return_mean']:.1f}"
    self._scores[phase] = score
    self.bar.set_postfix(self._scores)
    columns = [
      f"{phase:5}",
      f"step {row['step']:,}/{self._steps:,}",
      f"return {score}",
      f"{speed:,.0f} steps/s" if speed else "",
      "" if seconds_left is None else f"{duration(seconds_left)} left",
    ]
    _print("   ".join(filter(None, columns)))


def say(text: str) -> None:
  """Prints a text on stdout.

  Args:
    text: Text in one line; a longer text is wrapped.
  """
  _print(wrap(text))


def note(text: str) -> None:
  """Prints a text on stderr.

  Args:
    text: Text in one or more lines; longer lines are wrapped.
  """
  _print(wrap(text), sys.stderr)


def warn(text: str) -> None:
  """Prints a warning on stderr.

  Args:
    text: Text of the warning.
  """
  note(f"Warning, {text}")


def duration(seconds: float) -> str:
  """Returns a duration as text, such as "0:01:04".

  Args:
    seconds: Duration in seconds.
  """
  return str(datetime.timedelta(seconds=round(seconds)))


def wrap(text: str, indent: str = "") -> str:
  """Wraps lines at the width of the console; does not divide paths.

  Args:
    text: Lines of text.
    indent: Prefix of the additional lines.
  """
  return "\n".join(
    textwrap.fill(
      line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    for line in text.splitlines()
  )


def _print(text: str, file: TextIO | None = None) -> None:
  """Prints a text; if a progress bar is shown, prints above the bar."""
  with tqdm.tqdm.external_write_mode(file):
    print(text, file=file, flush=True)
