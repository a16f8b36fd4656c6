"""Shows each MuJoCo warning once, instead of writing MUJOCO_LOG.TXT.

Deprecated attributes in model files are not shown. They concern the authors of
the models, and Gymnasium's HalfCheetah has such an attribute.
"""

import re
import sys
import textwrap
import types
from collections.abc import Callable

from agents.environments.data import import_hook

_seen: set[str] = set()


def _print(text: str) -> None:
  print(textwrap.fill(f"MuJoCo: {text}", 100), file=sys.stderr, flush=True)


_show: Callable[[str], None] = _print


def capture(show: Callable[[str], None] | None = None) -> None:
  """Installs `warn` in MuJoCo, at once or when MuJoCo is imported.

  Args:
    show: Function that receives the text of each new warning. By default,
      warnings are printed.
  """
  global _show
  _show = show or _show
  if "mujoco" in sys.modules:
    sys.modules["mujoco"].set_mju_user_warning(warn)
  _hook.install()


def warn(text: str) -> None:
  """Shows a warning once; numbers in the text make no difference.

  Warnings about deprecated attributes are not shown.

  Args:
    text: Warning of MuJoCo.
  """
  pattern = re.sub(r"[\d.]+", "#", text.strip())
  if pattern not in _seen and "deprecated" not in text:
    _seen.add(pattern)
    _show(text.strip())


def _load(module: types.ModuleType, execute: import_hook.Execute) -> None:
  execute(module)
  # The first model can already cause a warning.
  module.set_mju_user_warning(warn)


_hook = import_hook.ImportHook("mujoco", _load)
