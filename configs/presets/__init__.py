"""Named algorithms for any task: `apply` in one module each.

A preset replaces the algorithm and the networks of a config, and leaves it the
task and the budget.
"""

from __future__ import annotations

import importlib
import pkgutil

from agents import config as config_lib
from agents import config_parsing


def names() -> list[str]:
  """Return the names of all presets."""
  return sorted(module.name for module in pkgutil.iter_modules(__path__))


def apply(name: str, config: config_lib.Config) -> config_lib.Config:
  """Return the config with the algorithm of a preset.

  Raises:
    ConfigError: If there is no such preset.
  """
  if name not in names():
    hint = config_parsing.did_you_mean(name, names())
    raise config_lib.ConfigError(
        f"--preset {name}: no such preset.{hint} There are: "
        f"{', '.join(names())}.")
  return importlib.import_module(f"{__name__}.{name}").apply(config)
