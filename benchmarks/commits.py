"""Training speed of this checkout beside another commit's, update by update.

    python -m benchmarks.commits e27717b --configs cheetah,hopper,ant

The two take turns at single updates, so that whatever else slows the machine
down slows down both; the ratios are medians over the pairs. The table also says
whether both made the same numbers of every update, to the last bit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from agents import configs
from benchmarks.common import machine
from benchmarks.common import tables

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SECONDS = "total", "stepping", "crossing", "inference", "learning"


class Trainer:
  """Trains a config by the code in a folder, an update when asked to.

  Args:
    folder: Holds the packages `agents` and `benchmarks`.
    name: Of the config.
  """

  def __init__(self, folder: pathlib.Path, name: str):
    self._errors = tempfile.TemporaryFile()
    self._process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.commits", "--serve", name],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        text=True)

  def update(self) -> dict[str, Any]:
    """Return seconds of each kind, and the metrics, of the next update."""
    assert self._process.stdin and self._process.stdout
    with contextlib.suppress(BrokenPipeError):  # There is more to say of it.
      print(file=self._process.stdin, flush=True)
    for line in self._process.stdout:
      if line.startswith("{"):
        return json.loads(line)
    self._errors.seek(0)
    raise machine.Failed("Training ended before its time:\n"
                         + self._errors.read()[-4000:].decode(errors="replace"))

  def close(self):
    """Let the process end."""
    self._process.communicate()
    self._errors.close()


def _serve(name: str):
  """Answer each line of the standard input by what an update was."""
  from agents import build
  from agents.environments.data import failure_budget
  from agents.environments.workers import pool
  _, config = configs.load(name)
  build.setup(config)
  with pool.WorkerPool(
      config.workers(pool.cores()),
      incidents=failure_budget.FailureBudget(config.most_incidents)) as workers:
    trainer = build.trainer(config, workers)
    trainer.start()
    for _ in sys.stdin:
      start = time.perf_counter()
      epoch = trainer.epoch(0.0)
      print(json.dumps({"total": time.perf_counter() - start, **epoch.seconds,
                        "metrics": epoch.metrics}), flush=True)
    trainer.close()


def _extract(commit: str, folder: pathlib.Path):
  """Write the files of a commit into a folder."""
  done = subprocess.run(["git", "archive", commit], cwd=_ROOT,
                        capture_output=True)
  if done.returncode:
    raise SystemExit(f"git has no files of {commit}: {done.stderr.decode()}")
  subprocess.run(["tar", "-x", "-C", folder], input=done.stdout, check=True)
  shutil.copy(__file__, folder / "benchmarks")  # What it runs with, too.


def measure(folders: list[pathlib.Path], name: str, updates: int
            ) -> list[tuple[dict[str, Any], ...]]:
  """Return what each of the updates was, in every folder."""
  with contextlib.ExitStack() as stack:
    trainers = [Trainer(folder, name) for folder in folders]
    for trainer in trainers:
      stack.callback(trainer.close)
    found = []
    for number in range(updates + 1):
      turns = list(enumerate(trainers))
      answers = {index: trainer.update() for index, trainer in (
          turns if number % 2 else reversed(turns))}
      if number:  # The first one compiles.
        found.append(tuple(answers[index] for index, _ in turns))
    return found


def cells(found: list[tuple[dict[str, Any], ...]]) -> list[str]:
  """Return milliseconds of an update, ratios, and whether numbers agree."""
  median = [statistics.median(answer["total"] for answer in answers)
            for answers in zip(*found, strict=True)]
  ratios = [statistics.median(there[key] / here[key] for there, here in found
                              if here[key]) for key in _SECONDS]
  # Metrics that only one of them knows can't be compared.
  same = all(there["metrics"][key] == here["metrics"][key]
             for there, here in found
             for key in there["metrics"].keys() & here["metrics"].keys())
  return [*(f"{1000 * seconds:.1f}" for seconds in median),
          *(f"{ratio:.3f}" for ratio in ratios), "yes" if same else "no"]


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("commit", nargs="?", default="HEAD",
                      help="whose code is measured beside the checkout's")
  parser.add_argument("--configs", default="cheetah,hopper,walker,ant,humanoid")
  parser.add_argument("--updates", type=int, default=100,
                      help="of each, in turns")
  parser.add_argument("--serve", help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.serve:
    _serve(args.serve)
    return
  machine.warn_if_busy()
  rows = []
  with tempfile.TemporaryDirectory() as folder:
    _extract(args.commit, pathlib.Path(folder))
    for name in args.configs.split(","):
      rows.append([name, *cells(measure(
          [pathlib.Path(folder), _ROOT], name, args.updates))])
      print(*rows[-1], flush=True)
  print(f"Milliseconds of an update at {args.commit} and here; ratios are "
        "above 1 where this checkout is faster.")
  print(tables.markdown(
      ["config", args.commit, "here", *_SECONDS, "same numbers"], rows))


if __name__ == "__main__":
  main()
