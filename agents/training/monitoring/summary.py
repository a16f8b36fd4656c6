"""What a run is about to do, and what it has done, in a few lines."""

from __future__ import annotations

import datetime
import json
import math

import gymnasium

from agents import config as config_lib
from agents.environments.workers import pool
from agents.training import trainer as trainer_lib
from agents.training.monitoring import time_budget
from agents.training.run_folder import run_folder


def beginning(folder: run_folder.RunFolder, trainer: trainer_lib.Trainer
              ) -> str:
  """Return five lines on what is trained how.

  The sixth is about the budget and how long it will take, which the first
  update tells.
  """
  config = folder.config
  env = trainer.train_env.batch_env
  lines = {
      "task": f"{config.env.id}: observations {_space(env.observation_space)}, "
              f"actions {_space(env.action_space)}",
      "batch": _batch(config),
      "networks": f"{_network(config)}: {_parameters(trainer):,} parameters",
      "updates": _updates(config),
      "folder": str(folder.path)}
  return "\n".join(f"{name:10}{line}" for name, line in lines.items())


def end(folder: run_folder.RunFolder) -> str:
  """Return a line on all of a run that `metrics.jsonl` tells of."""
  rows = [json.loads(line) for line in
          (folder.path / "metrics.jsonl").read_text().splitlines()]
  scores = [row for row in rows if row["phase"] == "eval"
            and row["return_mean"] is not None]
  train = [row for row in rows if row["phase"] == "train"]
  if not (scores and train):
    return "Too short a run to say anything of."
  best = max(scores, key=lambda row: row["return_mean"])
  total = time_budget.total(train)
  speed = total["steps_per_second"]
  seconds = datetime.timedelta(seconds=round(scores[-1]["seconds"]))
  return (
      f"Return {scores[-1]['return_mean']:,.1f} at the end, "
      f"{best['return_mean']:,.1f} at its best (step {best['step']:,}), in "
      f"{seconds}" + (f" with {speed:,.0f} steps/s" if speed else "")
      + f": {time_budget.text(total)}.")


def _space(space: gymnasium.Space) -> str:
  if isinstance(space, gymnasium.spaces.Discrete):
    return f"{space.n} choices"
  if not isinstance(space, gymnasium.spaces.Box):
    return str(space)
  shape = " x ".join(map(str, space.shape or ())) or "one"
  return f"{shape} {space.dtype}"


def _batch(config: config_lib.Config) -> str:
  envs = f"{config.num_envs} environments"
  if config.env.backend == "envpool":
    threads = config.workers(pool.cores())
    return f"{envs} in {threads} threads of EnvPool"
  if config.env.backend != "gymnasium":
    return f"{envs} in this process, by {config.env.backend}"
  if not config.env_processes:
    return f"{envs} in this process"
  workers = config.workers(pool.cores())
  return f"{envs} in {workers} worker processes"


def _network(config: config_lib.Config) -> str:
  network = config.network
  if network.hidden != "dense":
    return f"policy and value {network.hidden}"
  policy, value = ("-".join(map(str, layers)) or "linear" for layers in (
      network.policy_layers, network.value_layers))
  return f"policy {policy}, value {value}, {network.activation}"


def _parameters(trainer: trainer_lib.Trainer) -> int:
  return sum(math.prod(weight.shape) for weight in trainer.algorithm.weights)


def _updates(config: config_lib.Config) -> str:
  algorithm = config.algorithm
  minibatches = ("the whole batch" if algorithm.minibatch_size is None else
                 f"minibatches of {algorithm.minibatch_size:,}")
  if algorithm.update_every:
    batch = f"{algorithm.update_every:,} whole episodes"
  else:
    assert algorithm.segment_length  # One of the two is set.
    batch = f"{config.num_envs * algorithm.segment_length:,} steps"
  if algorithm.type != "ppo":
    return f"batches of {batch}, by {algorithm.type}"
  epochs = f"{algorithm.update_epochs} epochs"
  return f"batches of {batch}, {epochs} of {minibatches}"
