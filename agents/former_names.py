"""Keeps former names of modules importable for one release.

docs/extending.md uses the current names.
"""

import importlib
import sys
import types
from typing import Any

# Current name of each attribute as `module:attribute`, by former module.
_CURRENT_NAMES = {
  "agents.environments.backend": {"Backend": "agents.environments.blocks.custom_backend:Backend"},
  "agents.environments.block": {
    "Block": "agents.environments.blocks.gymnasium_block:GymnasiumBlock",
    "Report": "agents.environments.blocks.base:StepReport",
  },
  "agents.ops.returns": {"generalized_advantage": "agents.ops.gae:generalized_advantage"},
  "agents.parts": {},  # Parent package of the next module.
  "agents.parts.chunks": {
    name: f"agents.algorithms.gradient_accumulation:{current}"
    for name, current in {
      "filled": "num_filled",
      "split": "split",
      "take": "take",
      "total": "sum_chunks",
      "whole": "padded_rows",
    }.items()
  },
}


class _FormerModule(types.ModuleType):
  """Imports the current module when an attribute is accessed."""

  def __getattr__(self, name: str) -> Any:
    if name not in _CURRENT_NAMES[self.__name__]:
      raise AttributeError(f"{self.__name__} has no attribute {name!r}.")
    current = _CURRENT_NAMES[self.__name__][name]
    module, _, attribute = current.partition(":")
    return getattr(importlib.import_module(module), attribute)


def install() -> None:
  """Makes the former modules importable."""
  sys.modules.update({name: _FormerModule(name) for name in _CURRENT_NAMES})
