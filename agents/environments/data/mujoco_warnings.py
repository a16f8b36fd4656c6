"""Shows each MuJoCo warning once, and writes no MUJOCO_LOG.TXT."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import re
import sys
from collections.abc import Callable

_seen: set[str] = set()


def _print(text: str):
  print(f"MuJoCo: {text}", file=sys.stderr, flush=True)


_show: Callable[[str], None] = _print


def capture(show: Callable[[str], None] | None = None):
  """Take over MuJoCo's warnings, now or as soon as it is imported.

  Args:
    show: Receives the text of each new warning; prints it by default.
  """
  global _show
  _show = show or _show
  if "mujoco" in sys.modules:
    sys.modules["mujoco"].set_mju_user_warning(warn)
  elif _on_import not in sys.meta_path:
    sys.meta_path.insert(0, _on_import)


def warn(text: str):
  """Show a warning unless only its numbers differ from one shown before."""
  kind = re.sub(r"[\d.]+", "#", text.strip())
  if kind not in _seen:
    _seen.add(kind)
    _show(text.strip())


class _OnImport(importlib.abc.MetaPathFinder):
  """Takes over the warnings before the first model can cause any."""

  def find_spec(self, fullname, path, target=None):
    if fullname != "mujoco":
      return None
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    if spec and spec.loader:
      load = spec.loader.exec_module
      def exec_module(module):
        load(module)
        module.set_mju_user_warning(warn)
      spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


_on_import = _OnImport()
