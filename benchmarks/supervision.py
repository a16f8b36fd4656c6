"""Training speed with supervised workers beside that without supervision.

    python -m benchmarks.supervision --repeats 10

Supervised, a worker that dies or hangs is replaced, as training has it by
default; without, any failure ends the run and nobody looks at the time.
Imports and compilation are not counted.
"""

from __future__ import annotations

import functools
from typing import Any

from agents import configs
from benchmarks import speed
from benchmarks import turns


def training(changes: dict[str, Any], steps: int) -> float:
  """Return steps per second of training HalfCheetah."""
  _, config = configs.load("cheetah")
  return speed.training(config.override(changes), steps).steps_per_second


def main():
  assert __doc__
  turns.compare(
      "benchmarks.supervision", __doc__.splitlines()[0], {
          "supervised": (functools.partial(training, {}), 200_000),
          "alone": (functools.partial(training, {
              "on_env_error": "raise", "env_timeout": 0.0}), 200_000)},
      "steps/s with supervision ÷ without")


if __name__ == "__main__":
  main()
