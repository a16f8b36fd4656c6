"""Two machines beside one, and what they need to tell each other.

    python -m benchmarks.machines --configs cheetah,ant
    python -m benchmarks.machines --configs humanoid --set data_parallel=true \\
        --set algorithm.minibatch_size=2048

Machines are processes here, each pinned to a core of its own, which talk over
the loopback. In every round one of them trains alone, and then two of them
train the same run. The ratio is of their speeds, without evaluation and without
the first epoch, which compiles; the table also says whether both runs ended
with the same bits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from agents.training.monitoring import time_budget
from agents.training.run_folder import checkpoint
from benchmarks import machine
from benchmarks import tables

_TRAIN = pathlib.Path(__file__).resolve().parents[1] / "train.py"


class Run(NamedTuple):
  """What came of training once."""

  speed: float  # Steps per second.
  shares: dict[str, float]  # Of the time of training, by name.
  arrays: dict[str, bytes]  # Of the last checkpoint.


def main(argv: Sequence[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--configs", default="cheetah,ant")
  parser.add_argument("--steps", type=float, default=200_000, help="of a run")
  parser.add_argument("--rounds", type=int, default=2)
  parser.add_argument(
      "--noenv_processes", action="store_true",
      help="step environments in the process that learns, as is best where "
      "there is one core for both")
  parser.add_argument("--set", action="append", default=[], help="of all runs")
  args = parser.parse_args(argv)
  if len(os.sched_getaffinity(0)) < 2:
    raise SystemExit("This takes two cores, one for each machine.")
  machine.warn_if_busy()
  rows = []
  for config in args.configs.split(","):
    # Reports and evaluations are as rare as in a run of a million steps.
    changes = ["report_every=10000", "eval_every=100000", *args.set]
    settings = ["--config", config, "--steps", str(int(args.steps)), *(
        part for text in changes for part in ("--set", text)), *(
            ["--noenv_processes"] if args.noenv_processes else [])]
    rounds = [[train(settings, amount) for amount in (1, 2)]
              for _ in range(args.rounds)]
    rows.append([config, *row(rounds)])
    print(f"{config}: done", flush=True)
  print(tables.markdown([
      "config", "one, steps/s", "two, steps/s", "ratio", "learning, one",
      "exchange, two", "same bits"], rows))


def row(rounds: list[list[Run]]) -> list[str]:
  """Return the cells of a config, of its rounds of one machine and two."""
  one, two = zip(*rounds, strict=True)
  def middle(values):
    return statistics.median(values)
  return [
      f"{middle(run.speed for run in one):,.0f}",
      f"{middle(run.speed for run in two):,.0f}",
      f"{middle(b.speed / a.speed for a, b in rounds):.2f}",
      f"{middle(run.shares['learning'] for run in one):.0%}",
      f"{middle(run.shares['exchange'] for run in two):.0%}",
      "yes" if all(a.arrays == b.arrays for a, b in rounds) else "no"]


def train(settings: Sequence[str], machines: int) -> Run:
  """Train on so many machines, of one core each.

  Raises:
    Failed: If one of them does.
  """
  cores = sorted(os.sched_getaffinity(0))
  with tempfile.TemporaryDirectory() as logdir:
    addresses = ",".join(f"127.0.0.1:{port}" for port in _ports(machines))
    processes = [subprocess.Popen(
        [sys.executable, str(_TRAIN), *settings, "--logdir", logdir, *(
            ["--cluster", addresses, "--task", str(task)] if machines > 1
            else [])], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, preexec_fn=lambda core=cores[task]: os.sched_setaffinity(
            0, {core})) for task in range(machines)]
    outputs = [process.communicate()[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
      if process.returncode:
        raise machine.Failed(f"Training failed:\n{output[-4000:]}")
    folder, = pathlib.Path(logdir).iterdir()
    return read(folder)


def read(folder: pathlib.Path) -> Run:
  """Return what a run folder tells."""
  rows = [json.loads(line) for line in
          (folder / "metrics.jsonl").read_text().splitlines()]
  total: dict[str, Any] = time_budget.total(
      [row for row in rows if row["phase"] == "train"])
  training = 1 - total["evaluation_share"] - total["compiling_share"]
  arrays, _ = checkpoint.load(checkpoint.newest(folder / "checkpoints"))
  return Run(total["steps_per_second"], {
      name: total[f"{name}_share"] / training
      for name in ("learning", "exchange")},
      {name: array.tobytes() for name, array in arrays.items()})


def _ports(amount: int) -> list[int]:
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(amount)]
    for each in sockets:
      each.bind(("127.0.0.1", 0))
    return [each.getsockname()[1] for each in sockets]


if __name__ == "__main__":
  main()
