"""File formats of exported policies.

NAME.py contains the class `Format` of a format, and NAME.md shows in the README
of an exported policy how to run one step.
"""

import importlib
import pathlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from agents.export.formats import base

NAMES = sorted(
    path.stem for path in pathlib.Path(__file__).parent.glob("*.md"))


def load(name: str) -> "base.ExportFormat":
  """Imports a format.

  Args:
    name: Name of the format, one of `NAMES`.

  Returns:
    The format.
  """
  return importlib.import_module(f"{__name__}.{name}").Format()
