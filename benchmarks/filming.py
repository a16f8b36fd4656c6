"""What films cost that are drawn while training goes on.

    python -m benchmarks.filming --config cheetah

Trains in pairs, without films and with as many as can be drawn, and prints how
fast training with them was in parts of training without.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from agents.training.monitoring import time_budget
from benchmarks import machine


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--config", default="cheetah")
  parser.add_argument("--steps", type=int, default=600_000, help="of each run")
  parser.add_argument("--pairs", type=int, default=5)
  args = parser.parse_args(argv)
  machine.warn_if_busy()
  ratios = []
  for pair in range(args.pairs):
    every = ["--video_every", str(args.steps // 10)]
    runs = [[], every] if pair % 2 else [every, []]  # None is always first.
    (plain, _), (filmed, films) = sorted(
        (steps_per_second(args.config, args.steps, *run) for run in runs),
        key=lambda result: result[1])
    ratios.append(filmed / plain)
    print(f"{pair + 1}: {plain:,.0f} steps/s, with {films} films "
          f"{filmed:,.0f}", flush=True)
  print(f"with films ÷ without: median {statistics.median(ratios):.3f}, "
        f"between {min(ratios):.3f} and {max(ratios):.3f}")


def steps_per_second(config: str, steps: int, *args: str) -> tuple[float, int]:
  """Train, and return the speed without evaluations, and how many films."""
  with tempfile.TemporaryDirectory() as logdir:
    machine.python(
        "-m", "agents", "train", "--config", config, "--steps", str(steps),
        "--set", f"eval_every={steps}", "--logdir", logdir, *args)
    folder, = pathlib.Path(logdir).iterdir()
    rows = [json.loads(line) for line in
            (folder / "metrics.jsonl").read_text().splitlines()]
    speed = time_budget.total([row for row in rows if row["phase"] == "train"])[
        "steps_per_second"]
    assert speed is not None, "Too few steps to time any."
    return speed, len(list(folder.glob("videos/*.mp4")))


if __name__ == "__main__":
  sys.exit(main())
