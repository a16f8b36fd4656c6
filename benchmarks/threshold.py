"""How long training takes, start-up included, until it reaches a return.

    python -m benchmarks.threshold --config cheetah --seeds 20-24

Each run is the users' command with all cores, one after the other; seconds
count from its start, so imports and compilation are in them. A run ends when
both of these have reached the goal, which by default is the task's
`reward_threshold` in Gymnasium: the mean of its training episodes (sampled
actions) between two reports, and an evaluation of the policy (mean action).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import gymnasium

from agents import config as config_lib
from agents import configs
from benchmarks.common import machine
from benchmarks.common import scored_runs
from benchmarks.common import tables

PHASES = {"train": "training episodes", "eval": "evaluation"}
_ROOT = pathlib.Path(__file__).parent.parent


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--config", default="cheetah")
  parser.add_argument("--seeds", default="0-4", help="such as 0-4 or 1,3")
  parser.add_argument("--goal", type=float,
                      help="return to reach; None: the task's threshold")
  parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                      help="change a setting, as for train.py")
  args = parser.parse_args(argv)
  _, config = configs.load(args.config)
  config = config.override(dict(map(config_lib.parse_setting, args.set)))
  spec = gymnasium.registry.get(config.env.id)
  goal = args.goal if args.goal is not None else (
      spec and spec.reward_threshold)
  if goal is None:
    raise SystemExit(f"{config.env.id} has no reward_threshold: give a --goal.")
  machine.warn_if_busy()
  settings = [part for text in args.set for part in ("--set", text)]
  found = []
  for seed in scored_runs.seeds(args.seeds):
    found.append(seconds_to(
        goal, "--config", args.config, "--seed", str(seed), *settings))
    print(f"seed {seed}: {json.dumps(found[-1])}", flush=True)
  print(f"\nSeconds from the command to a return of {goal:g} on "
        f"{config.env.id}:\n\n{table(found)}")
  if limits := [run["step_limit"] for run in found if run["step_limit"]]:
    print(f"\nThe workers stepped {max(limits):,.0f} a second at most.")


def seconds_to(goal: float, *args: str) -> dict[str, float | None]:
  """Train until it is good enough, or to its end.

  Args:
    goal: Mean return to reach.
    args: Of `train.py`.
  Returns:
    Seconds from the start of the command to the first report of each of PHASES
    that reaches the goal, None where none did; and as `step_limit`, the steps a
    second at most that the run's workers made in a report, None without one.
  Raises:
    Failed: If the run fails.
  """
  found: dict[str, float | None] = dict.fromkeys(PHASES)
  limits = []
  with (tempfile.TemporaryDirectory() as logdir,
        tempfile.TemporaryFile("w+", errors="replace") as told):
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, str(_ROOT / "train.py"), *args, "--logdir", logdir],
        stdout=told, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
      ended, position = False, 0
      while None in found.values() and not ended:
        ended = process.poll() is not None  # Before its last rows are read.
        time.sleep(0.05)
        for path in pathlib.Path(logdir).glob("*/metrics.jsonl"):
          seconds = time.monotonic() - start
          lines = path.read_text()[position:].splitlines(keepends=True)
          for line in lines:
            if not line.endswith("\n"):
              break  # The rest of it is being written.
            position += len(line)
            row = json.loads(line)
            limits.append(row.get("step_limit"))
            phase, score = row["phase"], row.get("return_mean")
            if score is not None and score >= goal and (
                found.get(phase, 0.0) is None):
              found[phase] = seconds
      if ended and process.returncode:
        told.seek(0)
        raise machine.Failed(f"train.py {' '.join(args)} failed with exit code "
                             f"{process.returncode}:\n{told.read()[-4000:]}")
    finally:
      process.terminate()
      process.wait()
  return {**found, "step_limit": max(filter(None, limits), default=None)}


def table(found: list[dict[str, float | None]]) -> str:
  """Return a table of what `seconds_to` returned for some seeds."""
  rows = []
  for phase, title in PHASES.items():
    seconds = [math.inf if run[phase] is None else run[phase] for run in found]
    rows.append([title, *(
        f"{value:.0f}" if math.isfinite(value) else "never" for value in
        (statistics.median_high(seconds), min(seconds), max(seconds)))])
  return tables.markdown(["reached by", "median", "fastest", "slowest"], rows)


if __name__ == "__main__":
  main()
