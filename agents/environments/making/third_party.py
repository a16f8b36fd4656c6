"""Environments of other packages: which ids they have, and what brings them."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import NamedTuple

from agents import config as config_lib


class Family(NamedTuple):
  """Environments that come with an extra of this project's."""

  ids: str  # Regular expression of how their ids begin.
  extra: str  # In setup.py.
  modules: tuple[str, ...]  # Importing these registers the ids.


_FAMILIES = (
    Family("ALE/", "atari", ("ale_py",)),
    Family("dm_control/", "dm-control", ("dm_control.suite", "shimmy")),
    Family("Adroit|AntMaze|Fetch|FrankaKitchen|Hand(Reach|Manip)|PointMaze",
           "robotics", ("gymnasium_robotics",)),
    Family("BipedalWalker|CarRacing|LunarLander", "box2d", ("Box2D",)),
)


def find(env_id: str) -> Family | None:
  """Return the family that an id belongs to, None if it needs no other package.
  """
  if ":" in env_id:  # Says itself what to import.
    return None
  for family in _FAMILIES:
    if re.match(family.ids, env_id):
      return family
  return None


def register(env_id: str):
  """Import what registers an id, if anything has to be imported.

  Raises:
    ConfigError: If that is not installed, or does not fit what else is.
  """
  if not (family := find(env_id)):
    return
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # Of displays that aren't there.
      for module in family.modules:
        importlib.import_module(module)
  except Exception as error:  # Of all kinds, where versions don't fit.
    raise config_lib.ConfigError(
        f"env.id={env_id} needs {' and '.join(family.modules)}: "
        f"{advice(family.extra)}. {type(error).__name__}: {error}") from error


def advice(extra: str) -> str:
  """Say how to install an extra of this project's."""
  return f"`pip install 'batch-ppo[{extra}]'` brings what fits"
