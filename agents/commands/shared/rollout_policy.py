"""Plays episodes with policies that are rebuilt from a run folder."""

import contextlib
import functools
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents import build
from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.environments.making import make
from agents.environments.workers import pool
from agents.ops import random
from agents.simulation import in_graph_batch_env, worker_evaluator
from agents.training import trainer
from agents.training.run_folder import checkpoint, run_folder
from agents.videos import render_pool


class PolicyRollout(NamedTuple):
  """Episodes that the policy of one checkpoint played."""

  step: int  # Training steps before the checkpoint.
  episodes: list[episode_data.Episode]


def play(
  folder: run_folder.RunFolder,
  checkpoints: Sequence[pathlib.Path],
  num_episodes: int,
  num_envs: int,
  explore: bool,
) -> list[PolicyRollout]:
  """Plays episodes with the same seeds for each of several policies.

  The seeds are derived as in evaluations. Training uses the same code to build
  environments, networks and normalizers.

  Args:
    folder: Run folder.
    checkpoints: Paths of the checkpoints, one per policy.
    num_episodes: Number of episodes per policy.
    num_envs: Number of environments that play in parallel.
    explore: Whether to sample actions; otherwise the policy takes the mean
      action.

  Returns:
    One rollout per checkpoint. Each rollout contains the first episodes of all
    environments, then the second episodes of all environments, and so on.

  Raises:
    ConfigError: If a checkpoint belongs to another model.
  """
  config = folder.config
  num_envs = min(num_envs, num_episodes)
  with contextlib.closing(make.MakeEnv(config.env)()) as env:
    algorithm = build.algorithm(config, env.observation_space, env.action_space)
  # Loads all checkpoints first: a run in progress deletes old checkpoints.
  check = functools.partial(trainer.check_sizes, algorithm)
  loaded = [
    (checkpoint.step_of(path), checkpoint.load_variables(path, check)) for path in checkpoints
  ]
  seed = random.stream(config.seed, "eval")
  order = {
    episode_data.episode_seed(seed, index, episode): (episode, index)
    for episode in range(num_episodes)
    for index in range(num_envs)
  }
  variables = render_pool.worker_variables(config)
  with (
    pool.WorkerPool(min(num_envs, pool.num_cores()), variables=variables) as workers,
    batch_env.BatchEnv(make.constructors(config.env, num_envs, config.seed), workers, seed) as env,
  ):
    player = worker_evaluator.WorkerEvaluator(
      in_graph_batch_env.InGraphBatchEnv(env), algorithm, explore
    )
    rollouts = []
    for step, arrays in loaded:
      load(algorithm, step, arrays)
      episodes = player.play(num_episodes)
      assert episodes is not None
      # `player` returns episodes in the order of their ends, which depends on
      # the policy.
      episodes.sort(key=lambda episode: order[episode.seed])
      rollouts.append(PolicyRollout(step, episodes))
  return rollouts


def load(algorithm: trainer.Algorithm, step: int, arrays: dict[str, np.ndarray]) -> None:
  """Loads the variables of a checkpoint into an algorithm.

  Acting needs no variables of the optimizer, so the checkpoint may lack them.

  Args:
    algorithm: Algorithm that `build.algorithm` returned.
    step: Training steps before the checkpoint, for the error message.
    arrays: Arrays of the checkpoint by name.

  Raises:
    ConfigError: If the checkpoint belongs to another model.
  """
  variables = {f"variable/{name}": variable for name, variable in algorithm.variables().items()}
  optimizer = {
    name: np.array(variable)
    for name, variable in variables.items()
    if name.startswith(checkpoint.OPTIMIZER_PREFIX)
  }
  try:
    trainer.load_variables(algorithm, optimizer | arrays)
  except ValueError as error:
    raise config_lib.ConfigError(
      f"config.yaml and the checkpoint of step {step:,} do not fit: {error}"
    ) from error
