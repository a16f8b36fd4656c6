"""Named experiments: `CONFIG` in one small module each.

Each states only what differs from `default`, and why. Most also have an
`EXPECTED`, which is what README.md says under Results.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from typing import NamedTuple

from agents import config as config_lib
from agents import config_parsing


class Expected(NamedTuple):
  """What came of a config: final policies, with the mean action."""

  score: float  # Mean over the seeds.
  std: float | None  # None of one seed.
  seeds: int
  minutes: float  # That a run takes on at most two CPU cores.


def names() -> list[str]:
  """Return the names of all named configs."""
  return sorted(module.name for module in pkgutil.iter_modules(__path__)
                if not module.ispkg)


def about(name: str) -> tuple[str, Expected | None]:
  """Return the first line of a named config's file, and what to expect."""
  module = importlib.import_module(f"{__name__}.{name}")
  first, _, _ = str(module.__doc__).partition("\n")
  return first, getattr(module, "EXPECTED", None)


def load(name: str) -> tuple[str, config_lib.Config]:
  """Find a config by its name, or by the path of a user's own file.

  Args:
    name: Such as "cheetah", or "path/to/file.py" with a `CONFIG` in it.
  Returns:
    The name for the run folder, and the config.
  Raises:
    ConfigError: If there is no such config.
  """
  if name.endswith(".py") or os.sep in name:
    path = os.path.expanduser(name)
    spec = importlib.util.spec_from_file_location("user_config", path)
    if not (spec and spec.loader and os.path.isfile(path)):
      raise config_lib.ConfigError(
          f"--config {name}: there is no Python file of this name.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Where dataclasses look it up.
    try:
      spec.loader.exec_module(module)
    except Exception as error:
      trace = "".join(traceback.format_exception(error, limit=-1))
      raise config_lib.ConfigError(
          f"--config {name}: the file fails:\n{trace}") from error
    name = os.path.splitext(os.path.basename(path))[0]
  elif name in names():
    module = importlib.import_module(f"{__name__}.{name}")
    path = str(module.__file__)
  else:
    hint = config_parsing.did_you_mean(name, names())
    raise config_lib.ConfigError(
        f"--config {name}: no such config.{hint} There are: "
        f"{', '.join(names())}; or give the path of your own file.")
  config = getattr(module, "CONFIG", None)
  if not isinstance(config, config_lib.Config):
    raise config_lib.ConfigError(
        f"{path}: expected a module-level CONFIG of type agents.config.Config,"
        f" such as `CONFIG = default.CONFIG.override({{'env.id': ...}})`.")
  return name, config
