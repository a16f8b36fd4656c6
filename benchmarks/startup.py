"""How long it takes from the command to the first step and the first update.

    python -m benchmarks.startup --configs cheetah,humanoid

Each time in a process of its own, which does what train.py does; medians of
several, in seconds. `imports` are those of TensorFlow and TensorFlow
Probability; the rest counts from their end, but for the duration of a second
update.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from agents import configs
from agents.environments.workers import pool
from benchmarks.common import machine
from benchmarks.common import tables

COLUMNS = {
    "imports": "imports", "built": "environments and networks",
    "first_step": "first environment step",
    "first_update": "end of the first update",
    "second_update": "another update"}


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--configs", default="cheetah",
                      help="one or more, such as cheetah,humanoid")
  parser.add_argument("--repeats", type=int, default=3)
  parser.add_argument("--measure", help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.measure:
    print(json.dumps(measure(args.measure)))
    return
  machine.warn_if_busy()
  rows = []
  for name in args.configs.split(","):
    runs = [json.loads(machine.python(
        "-m", "benchmarks.startup", "--measure", name).splitlines()[-1])
            for _ in range(args.repeats)]
    rows.append([name, *(f"{statistics.median(run[column] for run in runs):.2f}"
                         for column in COLUMNS)])
  print(tables.markdown(["seconds", *COLUMNS.values()], rows))


def measure(name: str) -> dict[str, float]:
  """Start a run and return the seconds until each of COLUMNS."""
  _, config = configs.load(name)
  amount = config.workers(pool.cores())
  with pool.WorkerPool(amount) as workers:  # They start meanwhile.
    start = time.perf_counter()
    from agents import build
    seconds = {"imports": time.perf_counter() - start}
    start = time.perf_counter()
    build.setup(config)
    trainer = build.trainer(config, workers)
    trainer.start()
    seconds["built"] = time.perf_counter() - start
    env = trainer.train_env.batch_env
    exchange = env.exchange
    def first_exchange(*args):
      if "first_step" not in seconds:
        seconds["first_step"] = time.perf_counter() - start
      return exchange(*args)
    env.exchange = first_exchange
    trainer.epoch(0.0)
    seconds["first_update"] = time.perf_counter() - start
    again = time.perf_counter()
    trainer.epoch(0.0)
    seconds["second_update"] = time.perf_counter() - again
    trainer.close()
  return seconds


if __name__ == "__main__":
  main()
