"""Trains while faults are injected, and checks the results.

    python -m benchmarks.soak --minutes 30

Two runs train, and faults are injected into each for this time. In the first
run, workers are killed, stopped or made to hang, and the trainer is terminated
or killed, and then resumed. The reports and checkpoints of this run must be
bit-equal to those of a reference run without faults, which is trained
afterwards. In the second run, environments also raise errors and return NaN.
The return of this run must grow at least half as much as in a reference run. In
both runs, no report may be repeated, and no memory, descriptors or processes
may leak. The benchmark needs Linux.

This command injects only two kinds of faults, 20 times in total:

    python -m benchmarks.soak --config humanoid --only "kill,kill the trainer"
        --times 20
"""

import argparse
import collections
import os
import pathlib
import random
import signal
import tempfile
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.training.run_folder import checkpoint
from benchmarks import soaked_run
from benchmarks.common import command_line, faulty, machine, tables

# A run with these faults must be bit-equal to a run without faults.
_REPEATABLE = ("kill", "stop", "hang", "terminate the trainer", "kill the trainer")
_ALL = *_REPEATABLE, "raise", "nan"
# Faults that restart an environment.
_RESTARTS = "kill", "stop", "hang", "raise", "nan"
_WARM_UP_SECONDS = 25.0
# A run without faults grows by about 70 MB in its first three minutes.
_MAX_GROWTH = {"MB": 100, "descriptors": 4, "processes": 0}
_MIN_GAIN = 0.5  # Relative to the gain of the reference run.
# Fields that can differ between a run with faults and a run without faults.
_VARYING = "seconds", "steps_per_second", "step_limit", "restarts"

Rows = list[dict[str, Any]]  # Rows of `metrics.jsonl`.


class Report(NamedTuple):
  """Results of a run."""

  figures: dict[str, Any]  # Rows of the table.
  problems: list[str]  # Messages about violated requirements.


def inject(
  run: soaked_run.SoakedRun, faults: Sequence[str], seconds: float, args: argparse.Namespace
) -> Report:
  """Injects faults into a run, then ends it.

  Args:
    run: Run that trains.
    faults: Faults to choose from.
    seconds: Duration of the injections.
    args: Options of the command line.

  Returns:
    Report with the number of each fault and the growth of resources.
  """
  rng, end = random.Random(args.seed), time.monotonic() + seconds
  counts = collections.Counter(dict.fromkeys(faults, 0))
  due = time.monotonic()
  growth: dict[str, int] = {}  # Maximum growth within one trainer process.
  before: dict[str, int] = {}
  while time.monotonic() < end and counts.total() < args.times:
    # The recovery from the previous fault is part of the interval.
    due += rng.uniform(0.5, 1.5) * args.every
    time.sleep(max(0.0, due - time.monotonic()))
    run.wait_until(run.workers)
    if time.monotonic() - run.started > _WARM_UP_SECONDS:
      usage = run.usage()
      before = before or usage
      for name, value in usage.items():
        growth[name] = max(growth.get(name, 0), value - before[name])
    fault = rng.choice(faults)
    counts[fault] += 1
    print(f"{end - time.monotonic():5.0f} s left: {fault}", flush=True)
    _inject_one(run, fault, rng)
    if fault.endswith("the trainer"):
      before = {}
  reports = len(run.rows())
  run.wait_until(lambda: len(run.rows()) > reports + 1)
  run.end(signal.SIGTERM)
  run.fault.unlink(missing_ok=True)
  return Report(
    {**counts, **{f"growth of {name}": growth[name] for name in growth}},
    [
      f"The trainer's {name} have grown by {value}"
      for name, value in growth.items()
      if value > _MAX_GROWTH[name]
    ],
  )


def _inject_one(run: soaked_run.SoakedRun, fault: str, rng: random.Random):
  if fault in ("kill", "stop"):
    os.kill(rng.choice(run.workers()), signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
  elif fault in faulty.FAULTS:
    faulty.request(run.fault, fault)
  elif fault == "kill the trainer":
    run.end(signal.SIGKILL)
    run.resume()
  else:
    if (code := run.end(signal.SIGTERM)) != 128 + signal.SIGTERM:
      raise machine.ProcessFailed(f"Exit code {code}: {run.log()}")
    run.resume()


def compare(run: soaked_run.SoakedRun, injected: Report, identical: bool) -> Report:
  """Trains a reference run without faults, and compares both runs.

  Args:
    run: Run that has ended.
    injected: Report of `inject`.
    identical: Whether the runs must be bit-equal.

  Returns:
    The complete report of the run.
  """
  rows, saved = run.rows(), run.checkpoints()
  run.start_new("reference")
  run.wait_until(lambda: run.rows()[-1]["step"] >= max(saved), 1e6)
  run.end(signal.SIGTERM)
  # A run also saves a checkpoint at its end. This checkpoint can be newer than
  # the last report, and can be missing in the reference run.
  newest = max(step for step in saved if step <= rows[-1]["step"])
  common = saved.keys() & run.checkpoints().keys() - {0} if identical else set()
  problems = [*injected.problems, *repeated_reports(rows)]
  if identical:
    problems += differing_reports(rows, run.rows())
    problems += [] if common else ["The runs have no checkpoint in common."]
  for step in sorted(common):
    problems += differing_arrays(step, saved[step], run.checkpoints()[step])
  reference = [row for row in run.rows() if row["step"] <= newest]
  if len(rows) < len(reference):
    problems.append(f"{len(reference) - len(rows)} reports are missing.")
  problems += low_score(rows, reference)
  restarts = max(row.get("restarts", 0) for row in rows)
  if restarts > sum(injected.figures.get(fault, 0) for fault in _RESTARTS):
    problems.append(f"The run counts too many restarts: {restarts}")
  return Report(
    {
      **injected.figures,
      "restarts counted by the run": restarts,
      "steps": f"{rows[-1]['step']:,}",
      "score": round(score(rows), 1),
      "score of the reference": round(score(reference), 1),
      "checkpoints compared": len(common),
    },
    problems,
  )


def repeated_reports(rows: Rows) -> list[str]:
  """Returns a problem if steps are reported twice or in the wrong order."""
  problems = []
  for phase in ("train", "eval"):
    steps = [row["step"] for row in rows if row["phase"] == phase]
    if steps != sorted(set(steps)):
      problems.append(f"Some {phase} rows are reported twice: {steps}")
  return problems


def differing_reports(rows: Rows, reference: Rows) -> list[str]:
  """Returns a problem if reports differ in fields that must be equal."""

  def content(row):
    return {
      name: value
      for name, value in row.items()
      if name not in _VARYING and not name.endswith(("_share", "_memory"))
    }

  steps = [
    row["step"] for row, expected in zip(rows, reference) if content(row) != content(expected)
  ]
  return [f"The reports at these steps differ: {steps}"] if steps else []


def differing_arrays(step: int, path: pathlib.Path, reference: pathlib.Path) -> list[str]:
  """Returns a problem if two checkpoints differ in any bit."""
  arrays, expected = (checkpoint.load(each)[0] for each in (path, reference))
  names = [
    name for name in {**arrays, **expected} if arrays[name].tobytes() != expected[name].tobytes()
  ]
  return [f"These arrays differ at step {step}: {names}"] if names else []


def low_score(rows: Rows, reference: Rows) -> list[str]:
  """Returns a problem if a run with faults improved less than its reference."""
  evaluations = [row for row in reference if row["phase"] == "eval"]
  first, last, expected = map(score, (evaluations[:1], rows, reference))
  if len(evaluations) < 4:
    print("Note: the run is too short to compare scores.")
    return []
  gain = max(abs(expected - first), 0.1 * abs(expected))
  if last < expected - (1 - _MIN_GAIN) * gain:
    return [f"The score is too low: {last}; the reference has {expected}"]
  return []


def score(rows: Rows) -> float:
  """Returns the mean return of the last three evaluations; NaN without any."""
  scores = [
    row["return_mean"] for row in rows if row["phase"] == "eval" and row["return_mean"] is not None
  ]
  return float(np.mean(scores[-3:])) if scores else float("nan")


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, config="cheetah")
  parser.add_argument("--preset", help="name of a preset")
  parser.add_argument(
    "--minutes", type=float, default=30.0, help="duration of the injections into each run"
  )
  parser.add_argument("--every", type=float, default=20.0, help="mean seconds between two faults")
  parser.add_argument("--seed", type=int, default=0, help="seed of times and faults")
  parser.add_argument("--only", default="", help=f"inject only some of: {', '.join(_ALL)}")
  parser.add_argument("--times", type=int, default=1_000_000, help="maximum number of faults")
  args = parser.parse_args(argv)
  if unknown := {*filter(None, args.only.split(","))} - set(_ALL):
    parser.error(f"--only: unknown faults: {', '.join(unknown)}")
  plans = {"repeatable faults": _REPEATABLE, "all faults": _ALL}
  if args.only:
    plans = {args.only: tuple(args.only.split(","))}
  shared_memory = set(os.listdir("/dev/shm"))
  reports = []
  with tempfile.TemporaryDirectory() as folder:
    for index, faults in enumerate(plans.values()):
      run = soaked_run.SoakedRun(args.config, args.preset, pathlib.Path(folder) / str(index))
      try:
        injected = inject(run, faults, 60 * args.minutes, args)
        reports.append(compare(run, injected, set(faults) <= set(_REPEATABLE)))
      finally:
        for pid in run.processes():
          os.kill(pid, signal.SIGKILL)
  problems = sum((report.problems for report in reports), [])
  if leaked := set(os.listdir("/dev/shm")) - shared_memory:
    problems.append(f"These files remain in /dev/shm: {leaked}")
  keys = dict.fromkeys(key for report in reports[::-1] for key in report.figures)
  print(
    tables.markdown(
      ["", *plans],
      [[key, *(str(report.figures.get(key, "")) for report in reports)] for key in keys],
    )
  )
  if problems:
    raise SystemExit("\n".join(problems))


if __name__ == "__main__":
  main()
