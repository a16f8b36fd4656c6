"""Measures the time from the command to the first step and the first update.

    python -m benchmarks.startup --configs cheetah,humanoid

Every measurement starts a new process, which does the work of `train.py`. The
table has medians of seconds since the start of the process, except for "another
update", which is the duration of the second update. The update is compiled in
the first process, and the others load it from the cache.
"""

import argparse
import json
import statistics
import time

from benchmarks.common import command_line, machine, tables, training

COLUMNS = {
  "workers": "start of the workers",
  "imported": "imports",
  "built": "environments and networks",
  "first_step": "first environment step",
  "first_update": "end of the first update",
  "second_update": "another update",
}


def measure(name: str, start: float) -> dict[str, float]:
  """Starts a run and returns the seconds for each of COLUMNS.

  Args:
    name: Name of a config.
    start: Time of the start of this process.
  """
  config = training.load_config(name)
  from agents import training_run
  from agents.environments import train_env as train_env_lib
  from agents.training import compile_cache
  from agents.training.monitoring import quiet_imports

  training_run.check(config)
  with compile_cache.compile_cache(), training.open_workers(config) as workers:
    seconds = {"workers": time.time() - start}
    train_env = train_env_lib.build_in_background(config, workers)
    with quiet_imports.quiet_imports():
      from agents import build  # noqa: F401
    seconds["imported"] = time.time() - start
    with training.open_trainer(config, workers, train_env) as trainer:
      trainer.start()
      seconds["built"] = time.time() - start
      epoch = trainer.epoch(0.0)
      seconds["first_update"] = time.time() - start
      trainer.epoch(0.0)
  # An epoch traces the graph and then runs it. `epoch.seconds` covers the run,
  # including compilation; so the first step is at the start of the run.
  seconds["first_step"] = seconds["first_update"] - sum(epoch.seconds.values())
  seconds["second_update"] = time.time() - start - seconds["first_update"]
  return seconds


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, configs="cheetah")
  parser.add_argument(
    "--repeats", type=int, default=3, help="number of measurements of each config"
  )
  parser.add_argument("--measure", help=argparse.SUPPRESS)
  parser.add_argument("--since", type=float, help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.measure:
    print(json.dumps(measure(args.measure, args.since)))
    return
  machine.warn_if_busy()
  rows = []
  for name in args.configs.split(","):
    runs = [
      command_line.measure_in_child(
        "benchmarks.startup", "--measure", name, "--since", str(time.time())
      )
      for _ in range(args.repeats + 1)
    ][1:]
    rows.append(
      [name, *(f"{statistics.median(run[column] for run in runs):.2f}" for column in COLUMNS)]
    )
  print(tables.markdown(["seconds", *COLUMNS.values()], rows))


if __name__ == "__main__":
  main()
