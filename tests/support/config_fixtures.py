"""Loads named configs for tests, if their environments are installed."""

import pytest

from agents import config as config_lib
from agents import configs
from agents.environments.making import third_party


def config(name: str) -> config_lib.Config:
  """Returns a named config; skips the test if a package is missing."""
  _, loaded = configs.load(name)
  family = third_party.find(loaded.env.id)
  for module in family.modules if family else ():
    pytest.importorskip(module)
  if loaded.env.backend == "envpool" or loaded.env.id.startswith("robots/"):
    pytest.importorskip("envpool")
  if loaded.env.wrappers:
    pytest.importorskip("cv2")
  return loaded
