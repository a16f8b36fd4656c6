"""Ids of environments from other packages, and the extras that install them."""

import importlib
import re
import warnings
from typing import NamedTuple

from agents import config as config_lib


class Family(NamedTuple):
  """Environments that an extra of this project installs."""

  ids: str  # Regular expression that matches the beginning of their ids.
  extra: str  # Name in pyproject.toml.
  modules: tuple[str, ...]  # Importing these registers the ids.


_FAMILIES = (
  Family("ALE/", "atari", ("ale_py",)),
  Family("dm_control/", "dm-control", ("dm_control.suite", "shimmy")),
  Family(
    "Adroit|AntMaze|Fetch|FrankaKitchen|Hand(Reach|Manip)|PointMaze",
    "robotics",
    ("gymnasium_robotics",),
  ),
  Family("BipedalWalker|CarRacing|LunarLander", "box2d", ("Box2D",)),
  Family("robots/", "robots", ("agents.robots",)),
)


def find(env_id: str) -> Family | None:
  """Returns the family of an environment, or None if there is none.

  Args:
    env_id: Id of the environment. An id `module:name` belongs to the family of
      this module.
  """
  module, _, name = env_id.rpartition(":")
  return next(
    (
      family
      for family in _FAMILIES
      if (module in family.modules if module else re.match(family.ids, name))
    ),
    None,
  )


def register(env_id: str) -> None:
  """Imports the modules that register the id of an environment, if any.

  Args:
    env_id: Id of the environment.

  Raises:
    ConfigError: If a module is not installed or fails to import.
  """
  if not (family := find(env_id)):
    return
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # Missing displays cause warnings.
      for module in family.modules:
        importlib.import_module(module)
  except Exception as error:  # Incompatible versions raise errors of any type.
    raise config_lib.ConfigError(
      f"env.id={env_id} needs {' and '.join(family.modules)}: "
      f"{advice(family.extra)}. {type(error).__name__}: {error}"
    ) from error


def advice(extra: str) -> str:
  """Returns advice on how to install an extra of this project.

  Args:
    extra: Name in pyproject.toml.
  """
  return f"`pip install 'batched-ppo[{extra}]'` installs compatible versions"
