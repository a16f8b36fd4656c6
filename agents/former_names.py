"""Keeps former names of modules importable for one release.

docs/extending.md has the present names.
"""

import importlib
import sys
import types
from typing import Any

# Present place of each attribute of the former modules.
_PLACES = {
    "agents.environments.backend": {
        "Backend": "agents.environments.blocks.custom_backend:Backend"},
    "agents.environments.block": {
        "Block": "agents.environments.blocks.gymnasium_block:GymnasiumBlock",
        "Report": "agents.environments.blocks.base:StepReport"},
    "agents.ops.returns": {
        "generalized_advantage": "agents.ops.gae:generalized_advantage"},
    "agents.parts": {},
    "agents.parts.chunks": {
        name: f"agents.algorithms.gradient_accumulation:{present}"
        for name, present in {
            "filled": "num_filled", "split": "split", "take": "take",
            "total": "sum_chunks", "whole": "padded_rows"}.items()}}


class _FormerModule(types.ModuleType):
  """Imports the present module when an attribute is used."""

  def __getattr__(self, name: str) -> Any:
    if name not in _PLACES[self.__name__]:
      raise AttributeError(f"{self.__name__} has no attribute {name!r}.")
    module, _, attribute = _PLACES[self.__name__][name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def install():
  """Makes the former modules importable."""
  sys.modules.update({name: _FormerModule(name) for name in _PLACES})
