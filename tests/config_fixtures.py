"""Named configs, as far as their environments can be built here."""

from __future__ import annotations

import pytest

from agents import config as config_lib
from agents import configs
from agents.environments.making import third_party


def config(name: str) -> config_lib.Config:
  """Return a named config, or skip the test that needs what isn't installed."""
  _, found = configs.load(name)
  family = third_party.find(found.env.id)
  for module in family.modules if family else ():
    pytest.importorskip(module)
  if found.env.wrappers:
    pytest.importorskip("cv2")
  return found
