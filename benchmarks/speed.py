"""Speed and memory of training a config, or of its simulator alone.

    python -m benchmarks.speed --config hopper --set num_envs=32

Prints one line of JSON. Training includes learning, but neither evaluation nor
reports; imports and compilation are not counted. `--simulator` steps the same
environments in a plain loop with random actions, in one process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from typing import NamedTuple

from agents import config as config_lib
from agents.environments.data import failure_budget
from agents.environments.making import make
from agents.environments.workers import pool
from benchmarks import changed
from benchmarks.common import machine


class Speed(NamedTuple):
  """What was measured."""

  steps_per_second: float  # Of all environments together.
  memory: int | None  # Bytes of all processes together; see machine.memory.


def training(config: config_lib.Config, steps: int = 0,
             seconds: float = 0.0) -> Speed:
  """Train for at least so many steps and seconds, once it is compiled."""
  from agents import build
  build.setup(config)
  with contextlib.ExitStack() as stack:
    workers = None
    if config.env_processes:
      workers = stack.enter_context(pool.WorkerPool(
          config.workers(pool.cores()),
          incidents=failure_budget.FailureBudget(config.most_incidents),
          timeout=config.env_timeout))
    trainer = build.trainer(config, workers)
    stack.callback(trainer.close)
    trainer.start()
    trainer.epoch(0.0)  # Compiles.
    done, start = 0, time.perf_counter()
    while True:
      done += trainer.epoch(0.0).steps
      elapsed = time.perf_counter() - start
      if done >= steps and elapsed >= seconds:
        machine.release()
        pids = [os.getpid(), *(workers.pids if workers else [])]
        return Speed(done / elapsed, machine.memory(pids))


def simulator(config: config_lib.Config, steps: int = 0,
              seconds: float = 0.0) -> Speed:
  """Step environments with random actions in a plain loop, on one core."""
  constructor = make.MakeEnv(config.env)
  envs = [constructor() for _ in range(config.num_envs)]
  for env in envs:
    env.reset(seed=config.seed)
  done, start = 0, time.perf_counter()
  while True:
    for env in envs:
      _, _, terminated, truncated, _ = env.step(env.action_space.sample())
      if terminated or truncated:
        env.reset()
    done += len(envs)
    elapsed = time.perf_counter() - start
    if done >= steps and elapsed >= seconds:
      machine.release()
      return Speed(done / elapsed, machine.memory([os.getpid()]))


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--config", metavar="NAME", default="cheetah",
                      help="name or .py file of a config (default: cheetah)")
  parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                      help="change a setting, as for train.py")
  parser.add_argument("--seconds", type=float, default=3.0,
                      help="how long to measure at least (default: 3)")
  parser.add_argument("--simulator", action="store_true",
                      help="measure a plain loop over the environments instead")
  args = parser.parse_args(argv)
  config = changed.load(args.config, args.set)
  measure = simulator if args.simulator else training
  print(json.dumps(measure(config, seconds=args.seconds)._asdict()))


if __name__ == "__main__":
  main()
