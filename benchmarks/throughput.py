"""Compares training with the limit of the simulator and with other libraries.

    pip install -e '.[benchmarks]'
    python -m benchmarks.throughput --configs cheetah,walker --peers sb3

A policy trains for a while, and then for three seconds from seeded resets. Each
of several rounds repeats these steps in different ways:

    physics     MuJoCo alone: one C thread per core, 64 robots, random actions
    raw         the same environments in plain loops, one process per worker
    stepping    `BatchEnv.step` alone
    inference   the compiled loop: the policy acts, all environments step
    learning    the compiled update alone
    training    inference and learning, as `train.py` does between two reports
    new         training of an untrained policy, for comparison with other
                libraries; its episodes differ from the recorded ones
    evaluation  four episodes of the mean action, as between two epochs
    evaluation_in_graph  the same, with actions from the compiled graph

The table has steps per second of all environments together, as medians over the
rounds. A ratio is the median over the ratios of each round.
"""

import argparse
import functools
import json
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.making import make
from agents.environments.workers import pool
from benchmarks.common import command_line, machine, measuring_process, tables, training
from benchmarks.peers import libraries, physics

_SECONDS = 3.0  # Duration of the recorded updates, which are then repeated.
ROWS = (
  *("stepping", "inference", "learning", "training", "new"),
  *("evaluation", "evaluation_in_graph"),
)
_EPISODES = 4  # Number of episodes of an evaluation.
# Rows of which the table contains the ratio.
_RATIOS = (
  ("stepping", "physics"),
  ("training", "physics"),
  ("evaluation", "evaluation_in_graph"),
  ("new", "sb3_training"),
  ("vector_env", "gymnasium_async"),
)


class OwnTraining:
  """Trains one policy, and repeats its next updates on request.

  Args:
    trainer: Trainer of a config with a segment length.
    steps: Environment steps of the training before the measurements.
  """

  def __init__(self, trainer: Any, steps: float):
    self._trainer = trainer
    self._untrained = self._variables()
    trainer.start()
    trained_steps = 0
    while trained_steps < steps:
      trained_steps += trainer.epoch(0.0).steps
    self._trained = self._variables()
    self.action = self._record()  # Actions of shape [T, B, ...].

  def measure(self) -> dict[str, float]:
    """Returns steps per second for each of ROWS except "stepping"."""
    from agents.simulation import evaluator  # Imports TensorFlow.

    trained = self._train(self._trained)
    player = self._trainer.evaluator
    evaluations = {
      "evaluation": self._evaluate(player.play),
      "evaluation_in_graph": self._evaluate(functools.partial(evaluator.Evaluator.play, player)),
    }
    return {**trained, "new": self._train(self._untrained)["training"], **evaluations}

  def _evaluate(self, play: Callable[[int], list[Any]]) -> float:
    """Returns the steps per second of an evaluation."""
    start = time.perf_counter()
    episodes = play(_EPISODES)
    return sum(episode.length for episode in episodes) / (time.perf_counter() - start)

  def _record(self) -> np.ndarray:
    """Performs the updates that `_train` repeats, and returns their actions."""
    self._trainer.start()
    start = time.perf_counter()
    actions: list[np.ndarray] = []
    while time.perf_counter() - start < _SECONDS:
      actions.append(self._trainer.epoch(0.0).samples.action.numpy())
    self._num_updates = len(actions)
    return np.concatenate(actions)

  def _train(self, variables: dict[str, np.ndarray]) -> dict[str, float]:
    """Measures training from given variables and from the first resets."""
    self._trainer.algorithm.assign(variables)
    self._trainer.start()
    start = time.perf_counter()
    epochs = [self._trainer.epoch(0.0) for _ in range(self._num_updates)]
    total = time.perf_counter() - start
    steps = sum(epoch.steps for epoch in epochs)
    learning = sum(epoch.seconds["learning"] for epoch in epochs)
    collecting = sum(sum(epoch.seconds.values()) for epoch in epochs) - learning
    return {
      "inference": steps / collecting,
      "learning": steps / learning,
      "training": steps / total,
    }

  def _variables(self) -> dict[str, np.ndarray]:
    return {
      name: np.array(variable) for name, variable in self._trainer.algorithm.variables().items()
    }


def step(env: batch_env.BatchEnv, actions: np.ndarray) -> float:
  """Steps a batch of environments from the first resets.

  Args:
    env: Batch of B environments.
    actions: Array of shape [T, B, ...].

  Returns:
    Steps per second of all environments together.
  """
  env.reset()
  start = time.perf_counter()
  for action in actions:
    env.step(action)
  return len(actions) * len(env) / (time.perf_counter() - start)


def measure(
  name: str, settings: Sequence[str], peers: Sequence[str], rounds: int, steps: float
) -> list[dict[str, float]]:
  """Measures one config.

  Args:
    name: Name of a config.
    settings: Changes of the config, each as KEY=VALUE.
    peers: Names in `libraries.PEERS`.
    rounds: Number of measurements of every row.
    steps: Environment steps to train before measuring.

  Returns:
    Steps per second of each row, for each round.
  """
  config = training.load_config(name, settings)
  results = []
  with (
    training.open_workers(config) as workers,
    training.open_trainer(config, workers) as trainer,
    batch_env.BatchEnv([make.MakeEnv(config.env)] * config.num_envs, workers, config.seed) as env,
    tempfile.TemporaryDirectory() as folder,
  ):
    own = OwnTraining(trainer, steps)
    path = os.path.join(folder, "actions.npy")
    np.save(path, own.action)

    def start(row):
      return measuring_process.MeasuringProcess(
        "-m", "benchmarks.peers.libraries", row, path, name, *settings
      )

    shares = pool.split_evenly(config.num_envs, len(workers) if workers else 1)
    processes = {"physics": [start("physics")]} if physics.is_supported(config) else {}
    processes["raw"] = [start(f"{rows.start}-{rows.stop}") for rows in shares]
    for peer in peers:
      _, measurements = libraries.PEERS[peer]
      processes |= {row: [start(row)] for row in measurements}
    for index in range(rounds + 1):
      result = {}
      for row, members in processes.items():
        for process in members:
          process.request()
        result[row] = sum(process.receive() for process in members)
      result |= {"stepping": step(env, own.action), **own.measure()}
      if index:  # The first round warms up.
        results.append(result)
    for process in sum(processes.values(), []):
      process.close()
  return results


def markdown(report: dict[str, Any]) -> str:
  """Returns a table of medians, with ratios to the raw rate.

  Args:
    report: Contents of the JSON file.
  """
  rounds = report["configs"]
  names = list(rounds)
  rows = list(dict.fromkeys(row for name in names for row in rounds[name][0]))

  def cell(name, row):
    if row not in rounds[name][0]:
      return ""
    speed = statistics.median(x[row] for x in rounds[name])
    return f"{speed:,.0f} ({ratio(rounds[name], row, 'raw'):.2f})"

  lines = [[row, *(cell(name, row) for name in names)] for row in rows]
  for own, peer in _RATIOS:
    if any(peer in rounds[name][0] for name in names):
      lines.append(
        [
          f"{own} ÷ {peer}",
          *(
            f"{ratio(rounds[name], own, peer):.2f}" if peer in rounds[name][0] else ""
            for name in names
          ),
        ]
      )
  table = tables.markdown(["steps/s (÷ raw)", *names], lines)
  return (
    f"{table}\n\n{report['cores']} cores, load {report['load']:.1f} at "
    f"the start, {len(rounds[names[0]])} rounds.\n"
  )


def ratio(rounds: list[dict[str, float]], row: str, divisor: str) -> float:
  """Returns the median over the rounds of the ratio of two rows."""
  return statistics.median(x[row] / x[divisor] for x in rounds)


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, configs="cheetah", set="")
  parser.add_argument(
    "--peers", default="", help=f"any of {','.join(libraries.PEERS)}, separated by commas"
  )
  parser.add_argument("--rounds", type=int, default=3, help="measurements of each row")
  parser.add_argument(
    "--train", type=float, default=100_000, help="environment steps to train before measuring"
  )
  parser.add_argument(
    "--out", metavar="PATH", help="path of .json and .md files to write, without the suffix"
  )
  parser.add_argument(
    "--measure", action="store_true", help=argparse.SUPPRESS
  )  # One config, in this process.
  args = parser.parse_args(argv)
  names = args.configs.split(",")
  peers = [peer for peer in args.peers.split(",") if peer]
  try:
    configs = [training.load_config(name, args.set) for name in names]
  except config_lib.ConfigError as error:
    parser.error(str(error))
  if not all(config.algorithm.segment_length for config in configs):
    parser.error("Configs that learn from whole episodes cannot be measured.")
  if unknown := set(peers) - libraries.PEERS.keys():
    parser.error(f"--peers {','.join(unknown)}: choose from {', '.join(libraries.PEERS)}.")
  machine.require(*(libraries.PEERS[peer][0] for peer in peers))
  if args.measure:
    print(json.dumps(measure(*names, args.set, peers, args.rounds, args.train)))
    return
  machine.warn_if_busy()
  report: dict[str, Any] = {"cores": pool.num_cores(), "load": os.getloadavg()[0], "configs": {}}
  for name in names:  # Each in a process of its own, as users train.
    report["configs"][name] = command_line.measure_in_child(
      "benchmarks.throughput",
      "--measure",
      "--configs",
      name,
      "--peers",
      args.peers,
      "--rounds",
      str(args.rounds),
      "--train",
      str(args.train),
      *training.split_settings(args.set),
    )
    print(f"{name}: done", flush=True)
  table = markdown(report)
  print(table)
  if args.out:
    pathlib.Path(f"{args.out}.md").write_text(table)
    pathlib.Path(f"{args.out}.json").write_text(json.dumps(report, indent=2))


if __name__ == "__main__":
  main()
