"""The fastest settings among those measured, and what the defaults lack."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks import scaling_points


class Advice(NamedTuple):
  """What to set for speed."""

  best: scaling_points.Point
  share: float  # Speed of the defaults in units of the best one's.
  sure: bool  # Whether the best was ahead of the defaults in every round.


def choose(speeds: Mapping[scaling_points.Point, Sequence[float]],
           default: scaling_points.Point) -> Advice:
  """Choose the point of the highest median speed.

  Args:
    speeds: Steps per second in each round, the same rounds for all points.
    default: The point that is used unless told otherwise.
  """
  medians = {point: statistics.median(values)
             for point, values in speeds.items()}
  best = max(medians, key=lambda point: medians[point])
  ahead = [mine > theirs for mine, theirs in zip(
      speeds[best], speeds[default], strict=True)]
  return Advice(best, medians[default] / medians[best], all(ahead))


def describe(advice: Advice, config: str) -> str:
  """Return the advice in words, with the command that follows it."""
  if advice.share == 1:
    return "The defaults are the fastest."
  text = f"The defaults reach {advice.share:.0%} of the fastest:"
  if not advice.sure:
    text = (f"The defaults reach {advice.share:.0%} of the fastest, which was "
            "not ahead in every round; so keep the defaults, or try:")
  return f"{text}\n\n    {command(advice.best, config)}"


def command(point: scaling_points.Point, config: str) -> str:
  """Return the command line that trains with these settings."""
  variables = [f"{key}={value}" for key, value in point.variables.items()]
  return " ".join([*variables, shlex.join(
      ["python", "train.py", "--config", config, *point.args])])
