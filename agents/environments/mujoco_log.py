"""Shows each MuJoCo warning once, and writes no MUJOCO_LOG.TXT."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

_seen: set[str] = set()


def _print(text: str):
  print(f"MuJoCo: {text}", file=sys.stderr, flush=True)


_show: Callable[[str], None] = _print


def capture(show: Callable[[str], None] | None = None):
  """Take over MuJoCo's warnings, once it has been imported.

  Args:
    show: Receives the text of each new warning; prints it by default.
  """
  global _show
  _show = show or _show
  if "mujoco" in sys.modules:
    sys.modules["mujoco"].set_mju_user_warning(warn)


def warn(text: str):
  """Show a warning unless only its numbers differ from one shown before."""
  kind = re.sub(r"[\d.]+", "#", text.strip())
  if kind not in _seen:
    _seen.add(kind)
    _show(text.strip())
