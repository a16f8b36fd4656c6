"""Lets the policies of a run play, from its folder alone."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents import build
from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.data import episodes as episodes_lib
from agents.environments.making import make
from agents.environments.workers import pool
from agents.ops import random
from agents.simulation import evaluator
from agents.simulation import in_graph_batch_env
from agents.training import trainer
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder


class Played(NamedTuple):
  """What the policy of one checkpoint did."""

  step: int  # Of training.
  episodes: list[episodes_lib.Episode]


def play(folder: run_folder.RunFolder, checkpoints: Sequence[pathlib.Path],
         amount: int, num_agents: int, explore: bool) -> list[Played]:
  """Play the same episodes with each of some policies.

  The first episode of each environment is one of the evaluation's, too.
  Environment, networks and normalizers are rebuilt by the code of training.

  Args:
    folder: Of the run.
    checkpoints: Whose policies play.
    amount: Number of episodes for each.
    num_agents: Environments that play side by side.
    explore: Sample actions, or take the mean action.
  Raises:
    ConfigError: If a checkpoint is of another model.
  """
  config = folder.config
  constructor = make.MakeEnv(config.env)
  num_agents = min(num_agents, amount)
  # All at once: a run that goes on deletes some of them.
  loaded = [(checkpoint.step_of(path), checkpoint.load(path)[0])
            for path in checkpoints]
  seed = random.stream(config.seed, "eval")
  order = {episodes_lib.episode_seed(seed, index, number): (number, index)
           for number in range(amount) for index in range(num_agents)}
  with contextlib.ExitStack() as stack:
    workers = stack.enter_context(pool.WorkerPool(
        min(num_agents, pool.cores())))
    env = stack.enter_context(batch_env.BatchEnv(
        [constructor] * num_agents, workers, seed))
    algorithm = build.algorithm(
        config, env.observation_space, env.action_space)
    player = evaluator.Evaluator(
        in_graph_batch_env.InGraphBatchEnv(env), algorithm, explore)
    played = []
    for step, arrays in loaded:
      load(algorithm, step, arrays)
      found = player.play(amount)
      assert found is not None
      # Who ends first depends on the policy.
      found.sort(key=lambda episode: order[episode.seed])
      played.append(Played(step, found))
  return played


def load(algorithm: trainer.Algorithm, step: int,
         arrays: dict[str, np.ndarray]):
  """Give an algorithm the variables of the checkpoint of a step.

  Raises:
    ConfigError: If the checkpoint is of another model.
  """
  try:
    trainer.load_variables(algorithm, arrays)
  except ValueError as error:
    raise config_lib.ConfigError(
        f"config.yaml and the checkpoint of step {step:,} do not fit: "
        f"{error}") from error
