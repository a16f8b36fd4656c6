"""Measures the time from the command to the first step and the first update.

    python -m benchmarks.startup --configs cheetah,humanoid

Every measurement starts a new process, which does the work of `train.py`. The
table has medians in seconds. "imports" is the duration of importing TensorFlow
and TensorFlow Probability, and "another update" the duration of a second
update. All other times count from the end of the imports.
"""

import argparse
import json
import statistics
import time

from benchmarks.common import command_line, machine, tables, training

COLUMNS = {
  "imports": "imports",
  "built": "environments and networks",
  "first_step": "first environment step",
  "first_update": "end of the first update",
  "second_update": "another update",
}


def measure(name: str) -> dict[str, float]:
  """Starts a run and returns the seconds for each of COLUMNS.

  Args:
    name: Name of a config.
  """
  config = training.load_config(name)
  with training.open_workers(config) as workers:
    start = time.perf_counter()
    from agents import build  # noqa: F401

    imported = time.perf_counter()
    with training.open_trainer(config, workers) as trainer:
      trainer.start()
      built = time.perf_counter()
      epoch = trainer.epoch(0.0)
      first_update = time.perf_counter()
      trainer.epoch(0.0)
      second_update = time.perf_counter()
  # An epoch traces the graph and then runs it. `epoch.seconds` covers the run,
  # including compilation; so the first step is at the start of the run.
  first_step = first_update - sum(epoch.seconds.values())
  return {
    "imports": imported - start,
    "built": built - imported,
    "first_step": first_step - imported,
    "first_update": first_update - imported,
    "second_update": second_update - first_update,
  }


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, configs="cheetah")
  parser.add_argument(
    "--repeats", type=int, default=3, help="number of measurements of each config"
  )
  parser.add_argument("--measure", help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.measure:
    print(json.dumps(measure(args.measure)))
    return
  machine.warn_if_busy()
  rows = []
  for name in args.configs.split(","):
    runs = [
      command_line.measure_in_child("benchmarks.startup", "--measure", name)
      for _ in range(args.repeats)
    ]
    rows.append(
      [name, *(f"{statistics.median(run[column] for run in runs):.2f}" for column in COLUMNS)]
    )
  print(tables.markdown(["seconds", *COLUMNS.values()], rows))


if __name__ == "__main__":
  main()
