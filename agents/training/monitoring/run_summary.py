"""Console summary of a run: settings at the start, results at the end."""

import datetime
import json
import math

import gymnasium

from agents import config as config_lib
from agents.environments.workers import pool
from agents.training import trainer as trainer_lib
from agents.training.monitoring import time_usage
from agents.training.run_folder import run_folder


def beginning(folder: run_folder.RunFolder, trainer: trainer_lib.Trainer
              ) -> str:
  """Describes the settings of a run, in five lines.

  After the first update, `Progress.forecast` prints another line, about the
  budget.

  Args:
    folder: Run folder.
    trainer: Trainer of the run.

  Returns:
    One line each about task, batch, networks, updates and folder.
  """
  config = folder.config
  env = trainer.train_env.batch_env
  num_parameters = sum(
      math.prod(weight.shape) for weight in trainer.algorithm.weights)
  lines = {
      "task": f"{config.env.id}: observations {_space(env.observation_space)}, "
              f"actions {_space(env.action_space)}",
      "batch": _batch(config),
      "networks": f"{_networks(config.network)}: {num_parameters:,} parameters",
      "updates": _updates(config),
      "folder": str(folder.path)}
  return "\n".join(f"{name:10}{line}" for name, line in lines.items())


def end(folder: run_folder.RunFolder) -> str:
  """Describes the scores, speed and time of a run, in three lines.

  Args:
    folder: Run folder with `metrics.jsonl`.

  Returns:
    Last and best score, speed, and shares of the time.
  """
  rows = [json.loads(line) for line in
          (folder.path / "metrics.jsonl").read_text().splitlines()]
  scores = [row for row in rows if row["phase"] == "eval"
            and row["return_mean"] is not None]
  train = [row for row in rows if row["phase"] == "train"]
  if not (scores and train):
    return "The run is too short for a summary."
  best = max(scores, key=lambda row: row["return_mean"])
  duration = datetime.timedelta(seconds=round(scores[-1]["seconds"]))
  total = time_usage.total(train)
  return (
      f"Return {scores[-1]['return_mean']:,.1f} at the end, "
      f"{best['return_mean']:,.1f} at its best (step {best['step']:,}), in "
      f"{duration}.\n"
      f"Speed: {time_usage.describe_speed(total) or 'unknown'}.\n"
      f"Time: {time_usage.describe_shares(total)}.")


def _space(space: gymnasium.Space) -> str:
  if isinstance(space, gymnasium.spaces.Discrete):
    return f"{space.n} choices"
  if not isinstance(space, gymnasium.spaces.Box):
    return str(space)
  shape = " x ".join(map(str, space.shape or ())) or "one"
  return f"{shape} {space.dtype}"


def _batch(config: config_lib.Config) -> str:
  workers, backend = config.workers(pool.num_cores()), config.env.backend
  location = {
      "envpool": f"{workers} threads of EnvPool",
      "gymnasium": (f"{workers} worker processes" if config.env_processes
                    else "this process")}
  return (f"{config.num_envs} environments in "
          f"{location.get(backend, f'this process, by {backend}')}")


def _networks(network: config_lib.Network) -> str:
  if network.hidden != "dense":
    return f"policy and value {network.hidden}"
  policy, value = ("-".join(map(str, layers)) or "linear" for layers in (
      network.policy_layers, network.value_layers))
  return f"policy {policy}, value {value}, {network.activation}"


def _updates(config: config_lib.Config) -> str:
  algorithm = config.algorithm
  steps = config.num_envs * (algorithm.segment_length or 0)
  batch = (f"{algorithm.update_every:,} whole episodes"
           if algorithm.update_every else f"{steps:,} steps")
  if algorithm.type != "ppo":
    return f"batches of {batch}, by {algorithm.type}"
  minibatches = ("the whole batch" if algorithm.minibatch_size is None else
                 f"minibatches of {algorithm.minibatch_size:,}")
  return (f"batches of {batch}, {algorithm.update_epochs} epochs of "
          f"{minibatches}")
