"""Loads configs and opens trainers as `train.py` does, to measure them."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from agents import config as config_lib
from agents.commands.shared import merge_settings
from agents.environments.data import failure_budget
from agents.environments.workers import pool


def load_config(
  name: str, settings: Sequence[str] = (), preset: str | None = None
) -> config_lib.Config:
  """Returns a named config with changes.

  Args:
    name: Name of a config, or path of a Python file.
    settings: Changes, each as KEY=VALUE, see `train.py --set`.
    preset: Name of a preset.

  Raises:
    ConfigError: If a name, key or value is invalid.
  """
  return merge_settings.of_new_run(
    name, [preset] if preset else [], dict(map(config_lib.parse_setting, settings))
  ).config


def split_settings(settings: Sequence[str]) -> list[str]:
  """Returns command line arguments, a "--set" before each KEY=VALUE."""
  return [arg for setting in settings for arg in ("--set", setting)]


@contextlib.contextmanager
def open_workers(config: config_lib.Config) -> Iterator[pool.WorkerPool | None]:
  """Starts worker processes; ends them afterwards.

  The processes start in the background, for example while this process imports
  TensorFlow.

  Args:
    config: Configuration of the run.

  Yields:
    The workers; None if `config.env_processes` is false.
  """
  if not config.env_processes:
    yield None
    return
  with pool.WorkerPool(
    config.workers(pool.num_cores()),
    failure_budget=failure_budget.FailureBudget(config.max_failures),
    timeout=config.env_timeout,
  ) as workers:
    yield workers


@contextlib.contextmanager
def open_trainer(
  config: config_lib.Config, workers: pool.WorkerPool | None, train_env: Any = None
) -> Iterator[Any]:
  """Builds a trainer; closes it afterwards.

  Args:
    config: Configuration of the run.
    workers: Workers that step the environments, or None.
    train_env: Training environments; see `build.trainer`.

  Yields:
    The trainer, before its `start`.
  """
  from agents import build

  build.setup(config)
  with contextlib.closing(build.trainer(config, workers, train_env)) as trainer:
    yield trainer
