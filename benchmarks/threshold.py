"""Measures the time from the start of training until a return is reached.

    python -m benchmarks.threshold --config cheetah --seeds 20-24

Runs `train.py` once per seed, one run after the other, each with all cores.
Seconds count from the start of the command, so they include imports and
compilation. The goal is a return; by default, it is the `reward_threshold` of
the environment in Gymnasium. A run ends when both of these means have reached
the goal: the mean return of the training episodes between two reports (sampled
actions), and the mean return of an evaluation (mean action).
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium

from benchmarks.common import command_line, machine, scored_runs, tables, training

PHASES = {"train": "training episodes", "eval": "evaluation"}


def seconds_to(goal: float, *args: str) -> dict[str, float | None]:
  """Trains until the goal is reached, or until the run ends.

  Args:
    goal: Mean return to reach.
    args: Arguments of `train.py`.

  Returns:
    For each of PHASES, seconds from the start of the command to the first
    report that reaches the goal; None if no report reaches it.

  Raises:
    ProcessFailed: If the run fails.
  """
  seconds: dict[str, float | None] = dict.fromkeys(PHASES)
  with (
    tempfile.TemporaryDirectory() as logdir,
    tempfile.TemporaryFile("w+", errors="replace") as output,
  ):
    start = time.monotonic()
    process = subprocess.Popen(
      [sys.executable, str(machine.REPOSITORY / "train.py"), *args, "--logdir", logdir],
      stdout=output,
      stderr=subprocess.STDOUT,
      env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
      for row in _follow(process, pathlib.Path(logdir)):
        phase, score = row["phase"], row.get("return_mean")
        if phase in PHASES and seconds[phase] is None and (score is not None and score >= goal):
          seconds[phase] = time.monotonic() - start
        if None not in seconds.values():
          break
      if process.poll():
        output.seek(0)
        raise machine.ProcessFailed(
          f"train.py {' '.join(args)} failed with exit code "
          f"{process.returncode}:\n{output.read()[-4000:]}"
        )
    finally:
      process.terminate()
      process.wait()
  return seconds


def _follow(process: subprocess.Popen, logdir: pathlib.Path) -> Iterator[dict[str, Any]]:
  """Yields the rows of `metrics.jsonl` until the process has ended."""
  ended, position = False, 0
  while not ended:
    # Polls before reading, so that the last rows are read as well.
    ended = process.poll() is not None
    time.sleep(0.05)
    for path in logdir.glob("*/metrics.jsonl"):
      complete, newline, _ = path.read_text()[position:].rpartition("\n")
      position += len(complete + newline)
      yield from map(json.loads, complete.splitlines())


def table(runs: Sequence[dict[str, float | None]]) -> str:
  """Returns a table of the median, fastest and slowest run for each of PHASES.

  Args:
    runs: Results of `seconds_to`, one for each seed.
  """
  rows = []
  for phase, title in PHASES.items():
    seconds = [math.inf if run[phase] is None else run[phase] for run in runs]
    rows.append(
      [
        title,
        *(
          f"{value:.0f}" if math.isfinite(value) else "never"
          for value in (statistics.median_high(seconds), min(seconds), max(seconds))
        ),
      ]
    )
  return tables.markdown(["reached by", "median", "fastest", "slowest"], rows)


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, config="cheetah", seeds="0-4", set="")
  parser.add_argument("--goal", type=float, help="return to reach; None: the task's threshold")
  args = parser.parse_args(argv)
  config = training.load_config(args.config, args.set)
  spec, goal = gymnasium.registry.get(config.env.id), args.goal
  if goal is None and spec:
    goal = spec.reward_threshold
  if goal is None:
    raise SystemExit(f"{config.env.id} has no reward_threshold: give a --goal.")
  machine.warn_if_busy()
  runs = []
  for seed in scored_runs.parse_seeds(args.seeds):
    runs.append(
      seconds_to(
        goal, "--config", args.config, "--seed", str(seed), *training.split_settings(args.set)
      )
    )
    print(f"seed {seed}: {json.dumps(runs[-1])}", flush=True)
  print(f"\nSeconds from the command to a return of {goal:g} on {config.env.id}:\n\n{table(runs)}")


if __name__ == "__main__":
  main()
