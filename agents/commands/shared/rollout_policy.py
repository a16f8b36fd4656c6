"""Plays episodes with policies that are rebuilt from a run folder."""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Sequence
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
  algorithm, loaded = _load_all(config, checkpoints)
  with (
    _workers(config, num_envs) as workers,
    _player(config, algorithm, workers, num_envs, explore) as player,
  ):
    rollouts = []
    for step, arrays in loaded:
      load(algorithm, step, arrays)
      rollouts.append(PolicyRollout(step, _play(player, num_episodes, _seed(config))))
  return rollouts


def play_in_each(
  folder: run_folder.RunFolder,
  path: pathlib.Path,
  envs: Sequence[config_lib.Env],
  num_episodes: int,
  num_envs: int,
) -> Iterator[list[episode_data.Episode]]:
  """Plays episodes with the mean action and the same seeds in several tasks.

  Args:
    folder: Run folder.
    path: Path of the checkpoint.
    envs: Sections `env` of the tasks, which have the spaces of the run.
    num_episodes: Number of episodes per task.
    num_envs: Number of environments that play in parallel.

  Yields:
    Episodes of each task, in the order of `play`.

  Raises:
    ConfigError: If the checkpoint belongs to another model.
  """
  num_envs = min(num_envs, num_episodes)
  algorithm, [(step, arrays)] = _load_all(folder.config, [path])
  load(algorithm, step, arrays)
  with _workers(folder.config, num_envs) as workers:
    for env in envs:
      config = dataclasses.replace(folder.config, env=env)
      with _player(config, algorithm, workers, num_envs, explore=False) as player:
        yield _play(player, num_episodes, _seed(config))


def _seed(config: config_lib.Config) -> int:
  return random.stream(config.seed, "eval")


def _load_all(
  config: config_lib.Config, checkpoints: Sequence[pathlib.Path]
) -> tuple[trainer.Algorithm, list[tuple[int, dict[str, np.ndarray]]]]:
  """Returns the algorithm, and steps and arrays of all checkpoints.

  A run in progress deletes old checkpoints, so that they are loaded first.
  """
  with contextlib.closing(make.MakeEnv(config.env)()) as env:
    algorithm = build.algorithm(config, env.observation_space, env.action_space)
  check = functools.partial(trainer.check_sizes, algorithm)
  return algorithm, [
    (checkpoint.step_of(path), checkpoint.load_variables(path, check)) for path in checkpoints
  ]


def _workers(config: config_lib.Config, num_envs: int) -> pool.WorkerPool:
  variables = render_pool.worker_variables(config)
  return pool.WorkerPool(min(num_envs, pool.num_cores()), variables=variables)


@contextlib.contextmanager
def _player(
  config: config_lib.Config,
  algorithm: trainer.Algorithm,
  workers: pool.WorkerPool,
  num_envs: int,
  explore: bool,
) -> Iterator[worker_evaluator.WorkerEvaluator]:
  """Builds environments, and yields the evaluator that plays in them."""
  constructors = make.constructors(config.env, num_envs, config.seed)
  with batch_env.BatchEnv(constructors, workers, _seed(config)) as env:
    yield worker_evaluator.WorkerEvaluator(
      in_graph_batch_env.InGraphBatchEnv(env), algorithm, explore
    )


def _play(
  player: worker_evaluator.WorkerEvaluator, num_episodes: int, seed: int
) -> list[episode_data.Episode]:
  """Returns the episodes in the order of `play`."""
  order = {
    episode_data.episode_seed(seed, index, episode): (episode, index)
    for episode in range(num_episodes)
    for index in range(len(player.env))
  }
  episodes = player.play(num_episodes)
  assert episodes is not None
  # `player` returns episodes in the order of their ends, which depends on the
  # policy.
  return sorted(episodes, key=lambda episode: order[episode.seed])


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
