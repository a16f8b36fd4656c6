"""Import guard: prevents imports of Python modules from run folders.

A run folder may come from another person, so it is treated as data. Without
the guard, Python could import a module or namespace package from a run folder
in or below the current directory.
"""

import importlib.abc
import importlib.machinery
import os
import pathlib
import sys
import threading
import types
from collections.abc import Sequence


class _ImportGuard(importlib.abc.MetaPathFinder):
  """Finder that raises an error for modules in guarded folders."""

  # Absolute paths of the guarded folders, with and without resolved links. The
  # set is replaced instead of modified, because other threads read the set.
  folders: frozenset[str] = frozenset()

  def find_spec(
    self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
  ) -> None:
    """Raises ImportError if a module lies in a guarded folder."""
    spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
    if spec:
      locations = [*(spec.submodule_search_locations or ())]
      locations += [spec.origin] if spec.has_location else []
      if any(map(self.contains, locations)):
        raise ImportError(
          f"Module '{fullname}' can't be imported from a run folder.", name=fullname
        )

  def contains(self, location: str) -> bool:
    """Returns whether a path, or its link target, is in a guarded folder."""
    return any(
      os.path.commonpath((folder, path)) == folder
      for path in (os.path.abspath(location), os.path.realpath(location))
      for folder in self.folders
    )


_guard = _ImportGuard()
_lock = threading.Lock()


def add(folder: pathlib.Path) -> None:
  """Prevents all further imports from a folder and its subfolders.

  Args:
    folder: Path of the run folder.
  """
  with _lock:
    _guard.folders |= {os.path.abspath(folder), os.path.realpath(folder)}
    # Removes the folder from the module path, so that Python skips its modules.
    # Raising an error for them would also prevent the import of modules with
    # the same names from other entries of the path.
    sys.path[:] = [entry for entry in sys.path if not _guard.contains(entry)]
    if _guard not in sys.meta_path:
      sys.meta_path.insert(0, _guard)
