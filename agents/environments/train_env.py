"""Builds the training environments of a run; does not import TensorFlow."""

from typing import Any

from agents import config as config_lib
from agents.environments import backends, background_batch_env, batch_env
from agents.environments.data import failure_budget
from agents.environments.making import make
from agents.environments.workers import pool


def build(
  config: config_lib.Config, workers: pool.WorkerPool | None, rows: slice = slice(None)
) -> batch_env.BatchEnv:
  """Builds the training environments.

  Args:
    config: Configuration of the run.
    workers: Processes that step environments; None steps them in this process.
    rows: Indices of the environments to build; all by default.
  """
  return _build(batch_env.BatchEnv, config, workers, rows)


def build_in_background(
  config: config_lib.Config, workers: pool.WorkerPool | None
) -> background_batch_env.BackgroundBatchEnv | None:
  """Lets the workers build the training environments, without waiting for them.

  Args:
    config: Configuration of the run.
    workers: Processes that step environments.

  Returns:
    The environments; None if this process must build them.
  """
  if workers is None or config.env.backend != "gymnasium":
    return None
  return _build(background_batch_env.BackgroundBatchEnv, config, workers, slice(None))


def _build(
  batch_class: Any, config: config_lib.Config, workers: pool.WorkerPool | None, rows: slice
) -> Any:
  if config.stagger and config.algorithm.segment_length:
    constructors = make.staggered(config.env, config.num_envs, config.seed)
  else:
    constructors = make.constructors(config.env, config.num_envs, config.seed)
  budget = workers.failure_budget if workers else failure_budget.FailureBudget(config.max_failures)
  block_class = backends.block_class(config)
  return batch_class(
    constructors[rows],
    None if block_class else workers,
    config.seed,
    budget,
    block_class,
    rows.start or 0,
  )
