"""Console summary of a run: settings at the start, results at the end."""

import json
import math

import gymnasium

from agents import config as config_lib
from agents.environments.workers import pool
from agents.training import trainer as trainer_lib
from agents.training.monitoring import progress, time_usage
from agents.training.run_folder import run_folder

_LARGE_EVALUATION_SHARE = 0.2


def beginning(folder: run_folder.RunFolder, trainer: trainer_lib.Trainer, done: int = 0) -> str:
  """Describes the settings of a run.

  Args:
    folder: Run folder.
    trainer: Trainer of the run.
    done: Training steps completed before.

  Returns:
    One line each about task, batch, networks, updates, budget and folder.
  """
  config = folder.config
  env = trainer.train_env.batch_env
  num_parameters = sum(math.prod(weight.shape) for weight in trainer.algorithm.weights)
  lines = {
    "task": f"{config.env.id}: observations {_space(env.observation_space)}, "
    f"actions {_space(env.action_space)}",
    "batch": _batch(config),
    "networks": f"{_networks(config.network)}: {num_parameters:,} parameters",
    "updates": _updates(config),
    "budget": f"{config.steps:,} steps" + (f", {done:,} of them completed before" if done else ""),
    "folder": str(folder.path),
  }
  return "\n".join(progress.wrap(f"{name:10}{line}", " " * 10) for name, line in lines.items())


def end(folder: run_folder.RunFolder) -> str:
  """Describes the scores, speed and time of a run.

  Args:
    folder: Run folder with `metrics.jsonl`.

  Returns:
    Last and best score, speed, shares of the time, and the settings to change
    if evaluations take a large share.
  """
  rows = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
  scores = [row for row in rows if row["phase"] == "eval" and row["return_mean"] is not None]
  train = [row for row in rows if row["phase"] == "train"]
  if not (scores and train):
    return "The run is too short for a summary."
  best = max(scores, key=lambda row: row["return_mean"])
  total, config = time_usage.total(train), folder.config
  lines = [
    f"Return {scores[-1]['return_mean']:,.1f} at the end, "
    f"{best['return_mean']:,.1f} at its best (step {best['step']:,}), in "
    f"{progress.duration(scores[-1]['seconds'])}.",
    f"Speed: {time_usage.describe_speed(total) or 'unknown'}.",
    f"Time: {time_usage.describe_shares(total)}.",
  ]
  if (total["evaluation_share"] or 0.0) > _LARGE_EVALUATION_SHARE:
    lines.append(
      "To spend less time on evaluations, raise eval_every "
      f"({config.every('eval_every'):,}) or lower eval_episodes "
      f"({config.eval_episodes})."
    )
  return progress.wrap("\n".join(lines))


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
    "gymnasium": (f"{workers} worker processes" if config.env_processes else "this process"),
  }
  return f"{config.num_envs} environments in {location.get(backend, f'this process, by {backend}')}"


def _networks(network: config_lib.Network) -> str:
  if network.hidden != "dense":
    return f"policy and value {network.hidden}"
  policy, value = (
    "-".join(map(str, layers)) or "linear"
    for layers in (network.policy_layers, network.value_layers)
  )
  return f"policy {policy}, value {value}, {network.activation}"


def _updates(config: config_lib.Config) -> str:
  algorithm = config.algorithm
  steps = config.num_envs * (algorithm.segment_length or 0)
  batch = (
    f"{algorithm.update_every:,} whole episodes" if algorithm.update_every else f"{steps:,} steps"
  )
  if algorithm.type != "ppo":
    return f"batches of {batch}, by {algorithm.type}"
  minibatches = (
    "the whole batch"
    if algorithm.minibatch_size is None
    else f"minibatches of {algorithm.minibatch_size:,}"
  )
  return f"batches of {batch}, {algorithm.update_epochs} epochs of {minibatches}"
