"""How near training comes to the limit of the simulator, and what others do.

    pip install -e '.[benchmarks]'
    python -m benchmarks.throughput --configs cheetah,walker --peers sb3

A policy is trained a little, then plays 500 steps from seeded resets. These are
what everything else steps, in turns, several times:

    raw         the same environments in plain loops, one process a worker
    stepping    `BatchEnv.step` alone
    inference   the compiled loop: the policy acts, all environments step
    learning    the compiled update alone
    training    both, as `train.py` does it between two reports
    new         the same for a policy that has not learned yet, as the peers do;
                their episodes are not the recorded ones

Figures are steps per second of all environments together, medians over the
rounds; ratios are medians of each round's own.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from agents import config as config_lib
from agents.environments.workers import pool
from benchmarks import changed
from benchmarks import machine
from benchmarks import peers as peers_lib
from benchmarks import stretch as stretch_lib
from benchmarks import tables

STEPS = 500
OURS = ("stepping", "inference", "learning", "training", "new")


def main():
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument(
      "--configs", default="cheetah",
      help="one or more, such as cheetah,walker,hopper")
  parser.add_argument(
      "--set", metavar="KEY=VALUE", action="append", default=[],
      help="change a setting of all configs, for peers, too; as for train.py")
  parser.add_argument(
      "--peers", default="", help=f"any of {','.join(peers_lib.PEERS)}")
  parser.add_argument(
      "--rounds", type=int, default=5, help="of everything in turns")
  parser.add_argument(
      "--train", type=float, default=200_000, help="steps before measuring")
  parser.add_argument(
      "--out", default="throughput", help="where .json and .md are written")
  parser.add_argument(
      "--here", action="store_true", help=argparse.SUPPRESS)  # One config.
  args = parser.parse_args()
  peers = [name for name in args.peers.split(",") if name]
  for name in peers:
    if name not in peers_lib.PEERS:
      parser.error(f"--peers {name}: choose from {', '.join(peers_lib.PEERS)}.")
    if not peers_lib.installed(name):
      parser.error(f"--peers {name}: {peers_lib.PEERS[name][0]} is not "
                   "installed; see `pip install -e '.[benchmarks]'`.")
  names = args.configs.split(",")
  try:
    for name in names:
      changed.load(name, args.set)
  except config_lib.ConfigError as error:
    parser.error(str(error))
  if args.here:
    name, = names
    rounds = measure(name, args.set, peers, args.rounds, args.train)
    print(json.dumps(rounds))
    return
  machine.warn_if_busy()
  report: dict[str, Any] = {
      "cores": pool.cores(), "load": os.getloadavg()[0], "configs": {}}
  for name in names:
    # A process of its own, as every run of training has.
    output = machine.python(
        "-m", "benchmarks.throughput", "--here", "--configs", name, "--peers",
        args.peers, "--rounds", str(args.rounds), "--train", str(args.train),
        *(f"--set={setting}" for setting in args.set))
    report["configs"][name] = json.loads(output.splitlines()[-1])
    print(f"{name}: done", flush=True)
  table = markdown(report)
  print(table)
  pathlib.Path(f"{args.out}.md").write_text(table)
  pathlib.Path(f"{args.out}.json").write_text(json.dumps(report, indent=2))


def measure(name: str, settings: list[str], peers: list[str], rounds: int,
            steps: float) -> list[dict[str, float]]:
  """Return steps per second of everything, for each round."""
  from agents import build
  config = changed.load(name, settings)
  build.setup(config)
  amount = config.workers(pool.cores())
  with pool.WorkerPool(amount) as workers:
    trainer = build.trainer(config, workers)
    ours = Ours(trainer, config)
    ours.train(steps)
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, "stretch")
      stretch_lib.save(ours.record(), path)
      raw = [
          stretch_lib.Child("benchmarks.stretch", path, str(first), str(last))
          for first, last in pool.shares(config.num_envs, len(workers))]
      children = {"raw": raw}
      for peer in peers:
        for what in peers_lib.PEERS[peer][1]:
          children[what] = [
              stretch_lib.Child("benchmarks.peers", what, path, name,
                                *settings)]
      results = []
      for number in range(rounds + 1):
        result = {}
        for what, processes in children.items():
          for process in processes:
            process.ask()
          result[what] = sum(process.answer() for process in processes)
        for what in OURS:
          result[what] = getattr(ours, what)()
        if number:  # The first one warms up.
          results.append(result)
      for processes in children.values():
        for process in processes:
          process.close()
    trainer.close()
  return results


class Ours:
  """The parts of training, one at a time, by the same policy every time."""

  def __init__(self, trainer, config):
    import tensorflow as tf

    from agents.simulation import simulate
    self._tf, self._simulate = tf, simulate
    self._trainer, self._config = trainer, config
    self._env = trainer.train_env
    self._algorithm = trainer.algorithm
    self._collect = tf.function(functools.partial(
        simulate.simulate, self._env, self._algorithm, steps=STEPS,
        explore=True), autograph=False)
    self._learn = tf.function(lambda transitions, clock: self._algorithm.learn(
        trainer.memory.flatten(transitions, self._algorithm.initial_state(
            len(self._env))), clock, tf.constant(0.0)),
                              autograph=False)
    self._untrained = self._variables()

  def train(self, steps: float):
    """Train for a while; what was learned is what is measured."""
    self._trainer.start()
    done = 0
    while done < steps:
      done += self._trainer.epoch(0.0).steps
    self._trained = self._variables()

  def record(self) -> stretch_lib.Stretch:
    """Play from seeded resets."""
    played = self._collect(self._reset())
    self._experience = played.transitions
    self._actions = played.transitions.action.numpy()
    return stretch_lib.Stretch(
        self._config.env, self._config.seed, self._actions)

  def stepping(self) -> float:
    self._reset()
    env = self._env.batch_env
    groups = env.groups
    def play():
      for actions in self._actions:
        for action in np.split(actions, groups):
          env.exchange(action)
      env.drain()
    return self._rate(play)

  def inference(self) -> float:
    carry = self._reset()
    return self._rate(lambda: self._collect(carry).env_seconds.numpy())

  def learning(self) -> float:
    """Return steps learned from per second; it learns from each once."""
    steps, amount = self._trainer.memory.steps, 10
    transitions = self._tf.nest.map_structure(
        lambda x: x[:steps], self._experience)
    clock = self._tf.constant(0, self._tf.int64)
    start = time.perf_counter()
    for _ in range(amount):
      metrics, _ = self._learn(transitions, clock)
      metrics["kl"].numpy()
    seconds = time.perf_counter() - start
    self._set(self._trained)
    return amount * steps * len(self._env) / seconds

  def training(self) -> float:
    done, updates = 0, -(-STEPS // self._trainer.memory.steps)
    self._trainer.start()
    start = time.perf_counter()
    for _ in range(updates):
      done += self._trainer.epoch(0.0).steps
    seconds = time.perf_counter() - start
    self._set(self._trained)
    return done / seconds

  def new(self) -> float:
    self._set(self._untrained)
    return self.training()

  def _rate(self, function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return STEPS * len(self._env) / (time.perf_counter() - start)

  def _reset(self):
    env = self._env.batch_env
    env.finished.clear()
    env.final_observ.clear()
    return self._simulate.initial_carry(
        env.reset(), state=self._algorithm.initial_state(len(env)))

  def _variables(self):
    return {name: variable.numpy() for name, variable in
            self._algorithm.variables().items()}

  def _set(self, values):
    self._algorithm.assign(values)


def markdown(report: dict[str, Any]) -> str:
  """Return a table of medians, with ratios to the raw rate."""
  rounds = report["configs"]
  names = list(rounds)
  rows = list(rounds[names[0]][0])
  def cell(name, row):
    speed = statistics.median(x[row] for x in rounds[name])
    return f"{speed:,.0f} ({ratio(rounds[name], row, 'raw'):.2f})"
  lines = [[row, *(cell(name, row) for name in names)] for row in rows]
  for one, other in (("new", "sb3_training"),
                     ("vector_env", "gymnasium_async")):
    if other in rows:
      lines.append([f"{one} ÷ {other}", *(
          f"{ratio(rounds[name], one, other):.1f}" for name in names)])
  table = tables.markdown(["steps/s (÷ raw)", *names], lines)
  return (f"{table}\n\n{report['cores']} cores, load {report['load']:.1f} at "
          f"the start, {len(rounds[names[0]])} rounds.\n")


def ratio(rounds: list[dict[str, float]], one: str, other: str) -> float:
  """Return the median over the rounds of one speed divided by another."""
  return statistics.median(x[one] / x[other] for x in rounds)


if __name__ == "__main__":
  main()
