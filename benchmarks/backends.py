"""EnvPool beside our workers: steps a second of training, and of stepping.

    pip install -e '.[envpool]'
    python -m benchmarks.backends --configs cartpole,cheetah,humanoid

Both do the same in turns, in one process with its workers: random actions for
all environments of the config, then updates of training.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from typing import Any

import numpy as np

from agents import configs
from agents.environments.data import failure_budget
from agents.environments.workers import pool
from benchmarks import machine
from benchmarks import tables

_BACKENDS = "gymnasium", "envpool"


def measure(name: str, rounds: int, seconds: float) -> list[dict[str, float]]:
  """Return steps per second of each backend, for each round."""
  from agents import build
  _, config = configs.load(name)
  build.setup(config)
  with contextlib.ExitStack() as stack:
    workers = stack.enter_context(pool.WorkerPool(
        config.workers(pool.cores()),
        incidents=failure_budget.FailureBudget(config.most_incidents)))
    trainers = {}
    for backend in _BACKENDS:
      trainers[backend] = build.trainer(
          config.override({"env.backend": backend}), workers)
      stack.callback(trainers[backend].close)
    found = []
    for number in range(rounds + 1):
      row = {}
      for backend in _BACKENDS if number % 2 else reversed(_BACKENDS):
        trainer = trainers[backend]
        row[f"{backend} stepping"] = _stepping(
            trainer.train_env.batch_env, seconds)
        row[f"{backend} training"] = _training(trainer, seconds)
      if number:  # The first one compiles.
        found.append(row)
  return found


def _stepping(batch, seconds: float) -> float:
  batch.reset()
  space, size = batch.action_space, len(batch) // batch.groups
  discrete = batch.action_layout.fields[0].dtype == np.int64
  numbers = np.random.default_rng(0)
  shape = 100, size, *batch.action_layout.fields[0].shape[1:]
  actions = (numbers.integers(int(space.n), size=shape) if discrete else
             numbers.uniform(-1, 1, shape).astype(np.float32))
  steps, start = 0, time.perf_counter()
  while time.perf_counter() - start < seconds:
    for action in actions:
      for _ in range(batch.groups):
        batch.exchange(action)
    batch.drain()
    steps += len(actions) * len(batch)
    batch.finished.clear()
    batch.final_observ.clear()
  return steps / (time.perf_counter() - start)


def _training(trainer, seconds: float) -> float:
  trainer.start()
  steps, start = 0, time.perf_counter()
  while time.perf_counter() - start < seconds:
    steps += trainer.epoch(0.0).steps
  return steps / (time.perf_counter() - start)


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--configs", default="cartpole,cheetah,humanoid")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--seconds", type=float, default=2.0,
                      help="at least, of each measurement")
  parser.add_argument("--measure", help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.measure:
    print(json.dumps(measure(args.measure, args.rounds, args.seconds)))
    return
  machine.require("envpool")
  machine.warn_if_busy()
  lines = []
  for name in args.configs.split(","):
    output = machine.python(
        "-m", "benchmarks.backends", "--measure", name, "--rounds",
        str(args.rounds), "--seconds", str(args.seconds))
    lines.append([name, *_cells(json.loads(output.splitlines()[-1]))])
    print(*lines[-1], flush=True)
  print(tables.markdown(
      ["config", *(f"{what}, {backend}" for what in ("stepping", "training")
                   for backend in ("workers", "EnvPool", "EnvPool ÷ workers"))],
      lines))


def _cells(rounds: list[dict[str, Any]]) -> list[str]:
  cells = []
  for what in ("stepping", "training"):
    ours, theirs = ([row[f"{backend} {what}"] for row in rounds]
                    for backend in _BACKENDS)
    ratios = [one / other for one, other in zip(theirs, ours, strict=True)]
    cells += [f"{statistics.median(ours):,.0f}",
              f"{statistics.median(theirs):,.0f}",
              f"{statistics.median(ratios):.2f}"]
  return cells


if __name__ == "__main__":
  main()
