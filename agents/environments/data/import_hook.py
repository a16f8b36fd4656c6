"""Changes how a module is loaded, wherever it is imported."""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence

# Executes the code of a module.
Execute = Callable[[types.ModuleType], None]


class ImportHook(importlib.abc.MetaPathFinder):
  """Calls a function in place of the code of a module.

  Args:
    name: Name of a top-level module.
    load: Function that receives the module and a function that executes the
      code of the module.
  """

  def __init__(self, name: str, load: Callable[[types.ModuleType, Execute], None]) -> None:
    self._name = name
    self._load = load

  def install(self) -> None:
    """Waits for the import; has no effect if it has taken place."""
    if self._name not in sys.modules and self not in sys.meta_path:
      sys.meta_path.insert(0, self)

  def find_spec(
    self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
  ) -> importlib.machinery.ModuleSpec | None:
    """Finds the module; see `importlib.abc.MetaPathFinder`."""
    if fullname != self._name:
      return None
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    if spec and spec.loader:
      execute = spec.loader.exec_module
      spec.loader.exec_module = (  # type: ignore[method-assign]
        lambda module: self._load(module, execute)
      )
    return spec
