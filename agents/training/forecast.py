"""Forecast of the training time after the first epoch."""

from agents import config as config_lib
from agents.environments.making import make
from agents.environments.workers import pool
from agents.training import cost_model, epoch_result
from agents.training import trainer as trainer_lib


def minutes(config: config_lib.Config, trainer: trainer_lib.Trainer,
            epoch: epoch_result.Epoch, steps: int) -> float:
  """Estimate the minutes that training takes, including evaluations.

  Args:
    config: Configuration of the run.
    trainer: Trainer of the run.
    epoch: Result of the first epoch, which contains the stepping time.
    steps: Remaining training steps.
  Returns:
    Estimated minutes.
  """
  env = trainer.train_env.batch_env
  steps_per_second = epoch.steps / max(1e-9, epoch.least_seconds * env.parallel)
  try:
    episode_length = make.max_length(config.env)
  except config_lib.ConfigError:
    episode_length = 0  # Unknown: the environment has no time limit.
  return cost_model.training_seconds(
      config, env.observation_space, trainer.rollout_spec.rows, max(0, steps),
      steps_per_second, min(env.parallel, pool.num_cores()),
      episode_length) / 60
