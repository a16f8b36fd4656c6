"""Compares legged robots with the same robots in EnvPool.

    pip install -e '.[benchmarks,robots]'
    python -m benchmarks.robots --robots go1,spot

Each line has steps per second of all environments together, as medians over
rounds, and ratios as medians over the ratios of each round:

    envpool   EnvPool's task of MuJoCo Playground alone, two threads
    stepping  `BatchEnv.step` with this project's environment
    training  training with the named config

The last columns are the memory per environment, without that of the first one.
"""

import argparse
import contextlib
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from agents.environments import batch_env
from agents.environments.making import make
from agents.environments.workers import pool
from benchmarks.common import command_line, machine, tables, training

_SECONDS = 3.0  # Duration of a measurement.
_WARM_UP = 20  # Steps before a measurement.
_TASKS = {
  "go1": "Go1JoystickFlatTerrain-v1",
  "go1_rough": "Go1JoystickRoughTerrain-v1",
  "spot": "SpotFlatTerrainJoystick-v1",
  "barkour": "BarkourJoystick-v1",
  "h1": "H1JoystickGaitTracking-v1",
  "t1": "T1JoystickFlatTerrain-v1",
  "g1": "G1JoystickFlatTerrain-v1",
}


def measure(library: str, name: str, num_envs: int) -> dict[str, float]:
  """Returns the steps per second, and the memory of all processes in bytes.

  Args:
    library: "envpool" or "stepping".
    name: Name of a robot.
    num_envs: Number of environments.
  """
  measured = _envpool if library == "envpool" else _stepping
  with measured(name, num_envs) as (step, num_actions, pids):
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.3, 0.3, (_WARM_UP, num_envs, num_actions)).astype(np.float32)
    for action in actions:
      step(action)
    start, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < _SECONDS:
      step(actions[steps % _WARM_UP])
      steps += 1
    return {"speed": steps * num_envs / elapsed, "memory": machine.memory(pids) or 0}


@contextlib.contextmanager
def _envpool(name: str, num_envs: int) -> Iterator[tuple[Callable[..., Any], int, list[int]]]:
  """Yields the step of EnvPool, its number of actions, and its processes."""
  import envpool

  envs = envpool.make_gymnasium(
    _TASKS[name], num_envs=num_envs, num_threads=pool.num_cores(), seed=0
  )
  envs.reset()
  yield envs.step, envs.action_space.shape[0], [os.getpid()]


@contextlib.contextmanager
def _stepping(name: str, num_envs: int) -> Iterator[tuple[Callable[..., Any], int, list[int]]]:
  """Yields `BatchEnv.step`, its number of actions, and its processes."""
  config = training.load_config(name)
  constructors = make.constructors(config.env, num_envs, config.seed)
  with (
    training.open_workers(config) as workers,
    batch_env.BatchEnv(constructors, workers, config.seed) as env,
  ):
    env.reset()
    assert workers
    yield env.step, env.action_space.shape[0], [os.getpid(), *workers.pids]


def _in_child(library: str, name: str, num_envs: int) -> dict[str, float]:
  arguments = "--measure", library, "--robots", name, "--num-envs", str(num_envs)
  return command_line.measure_in_child("benchmarks.robots", *arguments)


def compare(name: str, rounds: int) -> list[str]:
  """Returns the cells of a robot's line.

  Args:
    name: Name of a robot.
    rounds: Number of measurements of every speed.
  """
  num_envs = training.load_config(name).num_envs
  measured = [
    (
      _in_child("envpool", name, num_envs),
      _in_child("stepping", name, num_envs),
      command_line.measure_in_child("benchmarks.speed", "--config", name)["steps_per_second"],
    )
    for _ in range(rounds)
  ]
  speeds = [(first["speed"], second["speed"], third) for first, second, third in measured]
  ratios = [(second / first, third / first) for first, second, third in speeds]
  small = [_in_child(library, name, 2)["memory"] for library in ("envpool", "stepping")]
  sizes = [
    (each["memory"] - before) / (num_envs - 2) / 1e6
    for each, before in zip(measured[-1][:2], small, strict=True)
  ]
  return [
    name,
    *(f"{statistics.median(values):,.0f}" for values in zip(*speeds, strict=True)),
    *(f"{statistics.median(values):.2f}" for values in zip(*ratios, strict=True)),
    *(f"{size:.1f}" for size in sizes),
  ]


def main(argv: list[str] | None = None) -> None:
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__)
  parser.add_argument("--robots", default=",".join(_TASKS), help="names, separated by commas")
  parser.add_argument("--rounds", type=int, default=3, help="rounds of measurements")
  parser.add_argument("--measure", help=argparse.SUPPRESS)
  parser.add_argument("--num-envs", type=int, help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.measure:
    print(json.dumps(measure(args.measure, args.robots, args.num_envs)))
    return
  machine.require("envpool")
  machine.warn_if_busy()
  header = "robot", "envpool", "stepping", "training", "stepping ÷", "training ÷"
  lines = [compare(name, args.rounds) for name in args.robots.split(",")]
  print(tables.markdown([*header, "envpool MB", "own MB"], lines))


if __name__ == "__main__":
  main()
