"""Measures speed and memory of training a config, or of its simulator alone.

    python -m benchmarks.speed --config hopper --set num_envs=32

Prints one line of JSON. Training includes learning, but neither evaluation nor
reports. Imports and compilation do not count. `--simulator` steps the same
environments in a plain loop with random actions, in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

from agents import config as config_lib
from agents.environments.making import make
from benchmarks.common import machine
from benchmarks.common import training


class Speed(NamedTuple):
  """Result of one measurement."""

  steps_per_second: float  # Of all environments together.
  memory: int | None  # Bytes of all processes, see `machine.memory`.


def measure_training(config: config_lib.Config, seconds: float) -> Speed:
  """Measure training, after an epoch that compiles.

  Args:
    config: Configuration of the run.
    seconds: Minimum duration.
  """
  with (training.open_workers(config) as workers,
        training.open_trainer(config, workers) as trainer):
    trainer.start()
    trainer.epoch(0.0)  # Compiles.
    pids = [os.getpid(), *(workers.pids if workers else [])]
    return _measure(lambda: trainer.epoch(0.0).steps, seconds, pids)


def measure_simulator(config: config_lib.Config, seconds: float) -> Speed:
  """Measure a plain loop with random actions, on one core.

  Args:
    config: Configuration of the run.
    seconds: Minimum duration.
  """
  constructor = make.MakeEnv(config.env)
  envs = [constructor() for _ in range(config.num_envs)]
  for env in envs:
    env.reset(seed=config.seed)

  def step() -> int:
    for env in envs:
      _, _, terminated, truncated, _ = env.step(env.action_space.sample())
      if terminated or truncated:
        env.reset()
    return len(envs)
  return _measure(step, seconds, [os.getpid()])


def _measure(work: Callable[[], int], seconds: float, pids: Sequence[int]
             ) -> Speed:
  """Repeat a function that returns a number of steps."""
  steps, start = 0, time.perf_counter()
  while (elapsed := time.perf_counter() - start) < seconds or not steps:
    steps += work()
  machine.release_memory()
  return Speed(steps / elapsed, machine.memory(pids))


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--config", metavar="NAME", default="cheetah",
                      help="name or .py file of a config")
  parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                      help="change a setting, as for train.py")
  parser.add_argument("--seconds", type=float, default=3.0,
                      help="minimum duration of the measurement")
  parser.add_argument("--simulator", action="store_true",
                      help="measure a plain loop over the environments instead")
  args = parser.parse_args(argv)
  config = training.load_config(args.config, args.set)
  measure = measure_simulator if args.simulator else measure_training
  print(json.dumps(measure(config, args.seconds)._asdict()))


if __name__ == "__main__":
  main()
