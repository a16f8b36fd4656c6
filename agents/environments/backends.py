"""Selects the library that steps the training environments (`env.backend`)."""

import functools
from collections.abc import Callable

from agents import config as config_lib
from agents.environments.blocks import custom_backend, envpool_block, vector_block
from agents.environments.workers import pool


def block_class(config: config_lib.Config) -> Callable[..., custom_backend.Backend] | None:
  """Returns the constructor of the block that steps all environments.

  Args:
    config: Configuration of the run.

  Returns:
    Constructor of a `Backend`. None for Gymnasium environments, which workers
    step, or `GymnasiumBlock` if there are none.

  Raises:
    ConfigError: If the custom class does not exist or is not a backend.
  """
  if config.env.backend == "gymnasium":
    return None
  if config.env.backend == "vector":
    return vector_block.VectorBlock
  if config.env.backend == "envpool":
    return functools.partial(envpool_block.EnvPoolBlock, threads=config.workers(pool.num_cores()))
  return custom_backend.find(config.env.backend)


def check(config: config_lib.Config) -> list[str]:
  """Checks whether the backend supports the settings of a run.

  Args:
    config: Configuration of the run.

  Returns:
    Notes for the user about limits of the backend.

  Raises:
    ConfigError: If the backend is not installed, does not exist or does not
      support a setting.
  """
  if config.env.backend == "gymnasium":
    return []
  if config.env.backend == "vector":
    return vector_block.check(config)
  if config.env.backend == "envpool":
    return envpool_block.check(config)
  return custom_backend.check(config, custom_backend.find(config.env.backend))
