"""Measures speed and memory of training a config.

    python -m benchmarks.speed --config hopper --set num_envs=32

Prints one line of JSON. The measured time includes learning, but not imports,
compilation, evaluations and reports.
"""

import json
import os
import time
from typing import NamedTuple

from agents import config as config_lib
from benchmarks.common import command_line, machine, training


class Speed(NamedTuple):
  """Result of one measurement."""

  steps_per_second: float  # Of all environments together.
  memory: int | None  # Bytes of all processes, see `machine.memory`.


def measure(config: config_lib.Config, seconds: float) -> Speed:
  """Measures training after a first epoch, which includes compilation.

  Args:
    config: Configuration of the run.
    seconds: Minimum duration of the measurement.
  """
  with training.open_workers(config) as workers, training.open_trainer(config, workers) as trainer:
    trainer.start()
    trainer.epoch(0.0)
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or not steps:
      steps += trainer.epoch(0.0).steps
    machine.release_memory()
    pids = [os.getpid(), *(workers.pids if workers else [])]
    return Speed(steps / elapsed, machine.memory(pids))


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, config="cheetah", set="")
  parser.add_argument(
    "--seconds", type=float, default=3.0, help="minimum duration of the measurement"
  )
  args = parser.parse_args(argv)
  config = training.load_config(args.config, args.set)
  print(json.dumps(measure(config, args.seconds)._asdict()))


if __name__ == "__main__":
  main()
