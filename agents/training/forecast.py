"""How long training is going to take."""

from __future__ import annotations

from agents import config as config_lib
from agents.environments.making import make
from agents.environments.workers import pool
from agents.training import cost_model
from agents.training import epoch_result
from agents.training import trainer as trainer_lib


def minutes(config: config_lib.Config, trainer: trainer_lib.Trainer,
            epoch: epoch_result.Epoch, steps: int) -> float:
  """Return roughly how many minutes some steps will take, evaluations and all.

  Args:
    config: Of the run.
    trainer: That trains it.
    epoch: The first one, which tells how fast the environments are.
    steps: Still to do.
  """
  env = trainer.train_env.batch_env
  # Of one of them in a plain loop.
  speed = epoch.steps / max(1e-9, epoch.least_seconds * env.parallel)
  try:
    length = make.max_length(config.env)
  except config_lib.ConfigError:
    length = 0  # Nobody knows.
  return cost_model.training_seconds(
      config, env.observation_space, trainer.memory.rows,
      max(0, steps), speed, min(env.parallel, pool.num_cores()),
      length) / 60
