"""Shows each MuJoCo warning once, instead of writing MUJOCO_LOG.TXT."""

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
  """Installs `warn` in MuJoCo, at once or when MuJoCo is imported.

  Args:
    show: Function that receives the text of each new warning. By default,
      warnings are printed.
  """
  global _show
  _show = show or _show
  if "mujoco" in sys.modules:
    sys.modules["mujoco"].set_mju_user_warning(warn)
  elif _import_hook not in sys.meta_path:
    sys.meta_path.insert(0, _import_hook)


def warn(text: str):
  """Shows a warning once; numbers in the text make no difference.

  Args:
    text: Warning of MuJoCo.
  """
  pattern = re.sub(r"[\d.]+", "#", text.strip())
  if pattern not in _seen:
    _seen.add(pattern)
    _show(text.strip())


class _ImportHook(importlib.abc.MetaPathFinder):
  """Sets the warning handler before the first model can cause a warning."""

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


_import_hook = _ImportHook()
