"""Trains while everything fails now and then, and looks at what is left.

    python -m benchmarks.soak --minutes 30

For half of the time, workers are killed, stopped, or hang, and the trainer is
terminated or killed and resumed: the run must have the bits of one that nobody
disturbs, which is trained afterwards. For the other half environments raise and
return what is not a number as well: the run must reach a score like the other
one's. In both, nothing may be counted twice, and no memory, descriptors or
processes may be left behind. Needs Linux.

    python -m benchmarks.soak --config humanoid --only "kill,kill the trainer"
        --times 20

does so with some of the faults, so many times.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import random
import signal
import tempfile
import time
from typing import Any

import numpy as np

from agents.training.run_folder import checkpoint
from benchmarks import soaked_run
from benchmarks.common import machine
from benchmarks.common import tables
from benchmarks.envs import faulty

_HARMLESS = "kill", "stop", "hang", "terminate the trainer", "kill the trainer"
_ALL = *_HARMLESS, "raise", "nan"
_RESTARTS = "kill", "stop", "hang", "raise", "nan"
_SECONDS_TO_WARM_UP = 25.0
_MOST_GROWTH = {"MB": 50, "descriptors": 4, "processes": 0}
_LEAST_SCORE = 0.5  # Of the undisturbed run's gain.


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--config", default="cheetah")
  parser.add_argument("--minutes", type=float, default=30.0)
  parser.add_argument("--every", type=float, default=20.0,
                      help="seconds between faults, on average")
  parser.add_argument("--seed", type=int, default=0, help="of the faults")
  parser.add_argument("--preset", help="of the algorithm")
  parser.add_argument("--only", help="these faults alone, with commas between "
                      f"them, of: {', '.join(_ALL)}")
  parser.add_argument("--times", type=int, default=1_000_000,
                      help="end a run after so many faults")
  args = parser.parse_args(argv)
  rng = random.Random(args.seed)
  kinds = [("only kills and hangs", _HARMLESS), ("all faults", _ALL)]
  if args.only:
    kinds = [(args.only, tuple(args.only.split(",")))]
    if unknown := set(kinds[0][1]) - set(_ALL):
      parser.error(f"--only: no such faults: {', '.join(unknown)}")
  seconds = 60 * args.minutes / len(kinds)
  with tempfile.TemporaryDirectory() as folder:
    found, shared = [], set(os.listdir("/dev/shm"))
    for number, (_, faults) in enumerate(kinds):
      run = soaked_run.Run(
          args.config, args.preset, pathlib.Path(folder) / str(number))
      try:
        report = soak(run, faults, seconds, args.times, args.every, rng)
        report["problems"] += compare(
            run, set(faults) <= set(_HARMLESS), report)
      finally:
        for pid in run.processes():
          os.kill(pid, signal.SIGKILL)
      found.append(report)
    if left := set(os.listdir("/dev/shm")) - shared:
      found[-1]["problems"].append(f"Left in /dev/shm: {left}")
  keys = dict.fromkeys(
      key for report in found[::-1] for key in report if key != "problems")
  print(tables.markdown(["", *(name for name, _ in kinds)], [
      [key, *(str(report.get(key, "")) for report in found)] for key in keys]))
  if problems := sum((report["problems"] for report in found), []):
    raise SystemExit("\n".join(problems))


def soak(run: soaked_run.Run, faults: tuple[str, ...], seconds: float,
         times: int, every: float, rng: random.Random) -> dict[str, Any]:
  """Let a run fail for a while, and report what there was to see.

  Args:
    run: That has begun.
    faults: To choose from.
    seconds: How long.
    times: How often at most.
    every: Seconds between them.
    rng: Chooses.
  """
  end = time.monotonic() + seconds
  counts: collections.Counter[str] = collections.Counter()
  grown: dict[str, int] = {}  # In the life of one trainer, at most.
  before: dict[str, int] = {}
  while time.monotonic() < end and counts.total() < times:
    time.sleep(rng.uniform(0.5, 1.5) * every)
    run.wait_for(lambda: len(run.workers()) >= 1)
    warm = time.monotonic() - run.started > _SECONDS_TO_WARM_UP
    if warm and not before:
      before = run.usage()
    elif warm:
      for name, value in run.usage().items():
        grown[name] = max(grown.get(name, 0), value - before[name])
    fault = rng.choice(faults)
    counts[fault] += 1
    print(f"{end - time.monotonic():5.0f} s left: {fault}", flush=True)
    if fault in ("kill", "stop"):
      os.kill(rng.choice(run.workers()),
              signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
    elif fault in faulty.FAULTS:
      faulty.order(run.fault, fault)
    else:
      if fault == "kill the trainer":
        run.end(signal.SIGKILL)
      elif (code := run.end(signal.SIGTERM)) != 128 + signal.SIGTERM:
        raise machine.Failed(f"Exit code {code}: {run.tail()}")
      run.resume()
      before = {}
  rows = len(run.rows())
  run.wait_for(lambda: len(run.rows()) > rows + 1)  # It goes on after all.
  run.end(signal.SIGTERM)
  run.fault.unlink(missing_ok=True)
  problems = [f"The trainer's {name} have grown by {value}"
              for name, value in grown.items() if value > _MOST_GROWTH[name]]
  return {**{fault: counts[fault] for fault in faults},
          **{f"growth of {name}": value for name, value in grown.items()},
          "problems": problems}


def compare(run: soaked_run.Run, same: bool, report: dict[str, Any]
            ) -> list[str]:
  """Train without faults up to the same step, and return what is wrong.

  Args:
    run: What has failed.
    same: Whether it has to be the same, or only about as good.
    report: To complete.
  """
  problems = []
  rows, path = run.rows(), run.path
  newest = max(step for step in run.saved() if step <= rows[-1]["step"])
  steps = sorted(run.saved())
  run.begin("reference")
  # Stopping saves where it stops, so the newest may be one of those.
  run.wait_for(lambda: run.rows()[-1]["step"] >= steps[-1], 1e6)
  run.end(signal.SIGTERM)
  common = [step for step in steps if step in run.saved() and step]
  others = run.rows()
  for phase in ("train", "eval"):
    reported = [row["step"] for row in rows if row["phase"] == phase]
    if reported != sorted(set(reported)):
      problems.append(f"Some {phase} rows are reported twice: {reported}")
  if same:
    if not common:
      problems.append(f"No checkpoint in common: {steps}, {run.saved()}")
    for step in common:
      name = f"checkpoint-{step:012d}.npz"
      arrays, _ = checkpoint.load(path / "checkpoints" / name)
      expected, _ = checkpoint.load(run.path / "checkpoints" / name)
      differing = [name for name in {**arrays, **expected}
                   if arrays[name].tobytes() != expected[name].tobytes()]
      if differing:
        problems.append(f"At step {step}, these differ: {differing}")
    differing = [row["step"] for row, other in zip(rows, others)
                 if _without_times(row) != _without_times(other)]
    if differing:
      problems.append(f"These reports differ: {differing}")
  others = [row for row in others if row["step"] <= newest]
  if len(rows) < len(others):
    problems.append(f"{len(others) - len(rows)} reports are missing.")
  evaluations = [row for row in others if row["phase"] == "eval"]
  first, last, other = map(_score, (evaluations[:1], rows, others))
  if len(evaluations) < 4:
    print("Note: too short to tell whether anything was learned.")
  elif last < other - (1 - _LEAST_SCORE) * max(
      abs(other - first), 0.1 * abs(other)):
    problems.append(f"It has learned too little: {last}, not {other}")
  restarts = max(row.get("restarts", 0) for row in rows)
  if restarts > sum(report.get(fault, 0) for fault in _RESTARTS):
    problems.append(f"More restarts are counted than there were: {restarts}")
  report |= {
      "restarts, as the run counts them": restarts,
      "steps": f"{rows[-1]['step']:,}", "score": round(last, 1),
      "score without faults": round(other, 1),
      "checkpoints compared": len(common) if same else 0}
  return problems


def _score(rows: list[dict[str, Any]]) -> float:
  """Mean return of the last evaluations."""
  scores = [row["return_mean"] for row in rows if row["phase"] == "eval"
            and row["return_mean"] is not None]
  return float(np.mean(scores[-3:])) if scores else float("nan")


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
  times = "seconds", "steps_per_second", "step_limit", "restarts"
  return {name: value for name, value in row.items()
          if name not in times and not name.endswith("_share")}


if __name__ == "__main__":
  main()
