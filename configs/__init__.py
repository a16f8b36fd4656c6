"""Named configs: one experiment per module, as a constant `CONFIG`.

A module lists the differences from another config, and gives the reasons. Most
modules have a constant `EXPECTED` with the results from
docs/results/learning.csv; see `Expected`.
"""

import importlib
import os
import pkgutil
import runpy
import statistics
import sys
import traceback
from typing import NamedTuple

from agents import config as config_lib
from agents import config_parsing


class Expected(NamedTuple):
  """Results of a config at the end of training, with the mean action."""

  scores: tuple[float, ...]  # Mean return of each seed's final policy.
  interval: tuple[float, float]  # 95 % bootstrap interval of the IQM.
  minutes: float  # Duration of a run on at most two CPU cores.

  @property
  def iqm(self) -> float:
    """Interquartile mean: mean without the lowest and the highest quarter."""
    cut = len(self.scores) // 4
    return statistics.fmean(sorted(self.scores)[cut : len(self.scores) - cut])


def names() -> list[str]:
  """Returns the names of all named configs."""
  return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def about(name: str) -> tuple[str, Expected | None]:
  """Returns the description and, if known, the results of a named config.

  Args:
    name: Name of the config, such as "cheetah".
  """
  module = importlib.import_module(f"{__name__}.{name}")
  first, _, _ = str(module.__doc__).partition("\n")
  expected = getattr(module, "EXPECTED", None)
  return first, Expected(**expected) if expected else None


def adapts_to_task(name: str) -> bool:
  """Returns whether runs of a config adapt some settings to task and budget.

  Args:
    name: Name of a config, or path of a Python file, which does not adapt.
  """
  if name not in names():
    return False
  return getattr(importlib.import_module(f"{__name__}.{name}"), "ADAPTS_TO_TASK", False)


def load(name: str) -> tuple[str, config_lib.Config]:
  """Loads a named config, or the config in a user's own file.

  Modules in the folder of the user's file become importable.

  Args:
    name: Name such as "cheetah", or path of a Python file with a `CONFIG`.

  Returns:
    Name of the config, with which the names of its run folders end, and the
    config.

  Raises:
    ConfigError: If the config does not exist, or its file raises an error.
  """
  if name.endswith(".py") or os.sep in name:
    path = os.path.expanduser(name)
    if not (path.endswith(".py") and os.path.isfile(path)):
      raise config_lib.ConfigError(f"--config {name}: no Python file has this name.")
    sys.path.append(os.path.dirname(os.path.abspath(path)))
    try:
      config = runpy.run_path(path, run_name="user_config").get("CONFIG")
    except Exception as error:
      trace = "".join(traceback.format_exception(error, limit=-1))
      raise config_lib.ConfigError(
        f"--config {name}: the file raises an error:\n{trace}"
      ) from error
    name = os.path.splitext(os.path.basename(path))[0]
  elif name in names():
    return name, importlib.import_module(f"{__name__}.{name}").CONFIG
  else:
    hint = config_parsing.did_you_mean(name, names())
    raise config_lib.ConfigError(
      f"--config {name}: no such config.{hint} Configs: "
      f"{', '.join(names())}; or give the path of your own file."
    )
  if not isinstance(config, config_lib.Config):
    raise config_lib.ConfigError(
      f"{path}: expected a module-level CONFIG of type agents.config.Config,"
      f" such as `CONFIG = default.CONFIG.override({{'env.id': ...}})`."
    )
  return name, config
