"""File formats of exported policies.

Each format has two files. NAME.py contains the class `Format`. NAME.md shows
how to run one step, and becomes a part of the README of an exported policy.
"""

import importlib
import pathlib
from typing import Any

NAMES = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("*.md"))


def load(name: str) -> Any:
  """Imports a format.

  Args:
    name: Name of the format, one of `NAMES`.

  Returns:
    New object of the format's class.
  """
  return importlib.import_module(f"{__name__}.{name}").Format(name)
