"""Presets: named algorithms for any task, with one function `apply` per module.

A preset replaces the algorithm and the networks of a config, and keeps the task
and the budget.
"""

import importlib
import pkgutil

from agents import config as config_lib
from agents import config_parsing


def names() -> list[str]:
  """Returns the names of all presets."""
  return sorted(module.name for module in pkgutil.iter_modules(__path__))


def apply(name: str, config: config_lib.Config) -> config_lib.Config:
  """Returns a config with the algorithm of a preset.

  Args:
    name: Name of the preset, such as "paper".
    config: Config that provides the task and the budget.

  Raises:
    ConfigError: If the preset does not exist.
  """
  if name not in names():
    hint = config_parsing.did_you_mean(name, names())
    raise config_lib.ConfigError(
      f"--preset {name}: no such preset.{hint} Presets: {', '.join(names())}."
    )
  return importlib.import_module(f"{__name__}.{name}").apply(config)
