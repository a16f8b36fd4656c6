"""Measures what domain randomization, vector interfaces and the live page cost.

    python -m benchmarks.overhead
    python -m benchmarks.overhead --only watch --logdir ~/logdir

Each line compares two speeds in steps per second, which are measured in turns.
The ratio is the median over the ratios of the rounds:

    randomization   training of HalfCheetah with randomized friction and
                    masses, against training without
    vector_env      `VectorEnv`, against Gymnasium's `SyncVectorEnv`
    vector_backend  `BatchEnv.step` with env.backend=vector, against the same
                    vector environment alone
    watch           training of HalfCheetah while a client requests the data of
                    the live page of `--logdir` as often as a browser, against
                    training without; not measured by default
"""

import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments import backends, batch_env
from agents.environments.adapters import vector_env
from agents.environments.making import make
from benchmarks.common import command_line, tables
from benchmarks.peers import timed_vectors

_RANDOMIZATION = "env.wrappers=[{DomainRandomization: {friction: [0.5, 1.5], mass: [0.8, 1.2]}}]"
_SECONDS = 0.1  # Duration of one measurement of steps; short, because speeds drift.
_ROUNDS = 40  # Of measurements of steps.
_SECONDS_OF_PAGE = 2.0  # Pause between the requests of the live page.


def training_speed(*settings: str) -> float:
  """Returns the speed of training HalfCheetah with settings."""
  arguments = [part for setting in settings for part in ("--set", setting)]
  result = command_line.measure_in_child("benchmarks.speed", "--config", "cheetah", *arguments)
  return result["steps_per_second"]


def watched_training_speed(logdir: str) -> float:
  """Returns the speed of training while a client uses the live page.

  Args:
    logdir: Folder of the runs that the page shows.
  """
  command = sys.executable, "-m", "agents", "watch", str(pathlib.Path(logdir).expanduser())
  with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
    assert server.stdout
    try:
      *_, url = (server.stdout.readline().strip() for _ in range(2))
      ended = threading.Event()
      client = threading.Thread(target=_request_repeatedly, args=(url, ended))
      client.start()
      try:
        return training_speed()
      finally:
        ended.set()
        client.join()
    finally:
      server.terminate()


def _request_repeatedly(url: str, ended: threading.Event) -> None:
  """Requests what the page requests if it shows the last run."""
  while not ended.wait(_SECONDS_OF_PAGE):
    with urllib.request.urlopen(f"{url}runs") as answer:
      name, run = json.load(answer)["runs"].popitem()
    query = {"run": name, "generation": run["generation"], "start": run["num_rows"]}
    urllib.request.urlopen(f"{url}run?{urllib.parse.urlencode(query)}").close()


def stepping_speed(step: Callable[[Any], Any], actions: np.ndarray) -> float:
  """Returns the steps per second of a function that steps N environments.

  Args:
    step: Function of actions, [N, ...].
    actions: Actions of several steps, [T, N, ...].
  """
  num_steps, start = 0, time.perf_counter()
  while (elapsed := time.perf_counter() - start) < _SECONDS:
    for action in actions:
      step(action)
    num_steps += len(actions) * len(actions[0])
  return num_steps / elapsed


def compare(
  first: Callable[[], float], second: Callable[[], float], rounds: int
) -> tuple[float, float, float]:
  """Returns both speeds, and their ratio, as medians over rounds.

  Args:
    first: Measures a speed.
    second: Measures the other speed.
    rounds: Number of rounds.
  """
  pairs = [(first(), second()) for _ in range(rounds)]
  return _medians(pairs)


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
  """Returns the medians of both speeds and of their ratios."""
  first, second = zip(*pairs, strict=True)
  ratio = statistics.median(one / other for one, other in pairs)
  return statistics.median(first), statistics.median(second), ratio


def compare_vectors(env_id: str, num_envs: int, rounds: int) -> tuple[float, float, float]:
  """Compares `VectorEnv` with `SyncVectorEnv`.

  Args:
    env_id: Id of the environments.
    num_envs: Number of environments.
    rounds: Number of rounds.
  """
  sync = gymnasium.make_vec(env_id, num_envs, vectorization_mode="sync")
  with contextlib.closing(vector_env.make_vec(env_id, num_envs)) as ours, contextlib.closing(sync):
    ours.action_space.seed(0)
    actions = np.array([ours.action_space.sample() for _ in range(50)])
    ours.reset(seed=0)
    sync.reset(seed=0)
    return compare(
      lambda: stepping_speed(ours.step, actions), lambda: stepping_speed(sync.step, actions), rounds
    )


def backend_share(name: str, num_envs: int, rounds: int) -> tuple[float, float, float]:
  """Compares the backend "vector" with the vector environment within it.

  Args:
    name: Name of a function in `timed_vectors`.
    num_envs: Number of environments.
    rounds: Number of rounds.
  """
  env = config_lib.Env(f"benchmarks.peers.timed_vectors:{name}", backend="vector")
  with batch_env.BatchEnv(
    make.constructors(env, num_envs, 0), block_class=backends.block_class(config_lib.Config(env))
  ) as batch:
    space = batch.action_space
    space.seed(0)
    actions = np.array([[space.sample() for _ in range(num_envs)] for _ in range(50)])
    batch.reset()

    def step(action: np.ndarray) -> None:
      batch.step_packed(action)
      batch.take_final_observ()
      batch.take_finished()

    pairs = []
    for _ in range(rounds):
      timed_vectors.Timed.seconds = 0.0
      start = time.perf_counter()
      speed = stepping_speed(step, actions)
      pairs.append((speed, speed * (time.perf_counter() - start) / timed_vectors.Timed.seconds))
  return _medians(pairs)


def main(argv: list[str] | None = None) -> None:
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__)
  parser.add_argument(
    "--only", default="randomization,vector_env,vector_backend", help="comparisons to measure"
  )
  parser.add_argument("--rounds", type=int, default=5, help="rounds of training")
  parser.add_argument("--logdir", default="~/logdir", help="folder of runs for the live page")
  args = parser.parse_args(argv)
  measurements: dict[str, dict[str, Callable[[], tuple[float, float, float]]]] = {
    "randomization": {
      "cheetah": lambda: compare(
        lambda: training_speed(_RANDOMIZATION), training_speed, args.rounds
      )
    },
    "watch": {
      "cheetah": lambda: compare(
        lambda: watched_training_speed(args.logdir), training_speed, args.rounds
      )
    },
    "vector_env": {
      f"{env_id}, {num_envs} environments": lambda env_id=env_id, num_envs=num_envs: (
        compare_vectors(env_id, num_envs, _ROUNDS)
      )
      for env_id, num_envs in (("CartPole-v1", 8), ("CartPole-v1", 64), ("HalfCheetah-v5", 64))
    },
    "vector_backend": {
      f"{env_id}, {num_envs} environments": lambda env_id=env_id, num_envs=num_envs: backend_share(
        env_id, num_envs, args.rounds
      )
      for env_id, num_envs in (("cartpoles", 64), ("cheetahs", 64))
    },
  }
  lines = [
    [f"{kind}: {name}", *(f"{value:,.0f}" for value in speeds), f"{ratio:.2f}"]
    for kind in args.only.split(",")
    for name, measure in measurements[kind].items()
    for *speeds, ratio in [measure()]
  ]
  print(tables.markdown(["comparison", "steps/s", "against", "ratio"], lines))


if __name__ == "__main__":
  main()
