"""Folders that nothing is imported from.

A run folder that somebody else has made is data, wherever it lies: as the
current directory, or below it, where Python would find its folders as packages.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import pathlib
import sys
import threading


class _Refusal(importlib.abc.MetaPathFinder):
  """Finds no module, and raises an error for those in some folders."""

  def __init__(self):
    # As links are followed; replaced as a whole, as other threads look at it.
    self.folders: frozenset[str] = frozenset()

  def find_spec(self, fullname, path=None, target=None):
    spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
    if spec:
      places = [*(spec.submodule_search_locations or ())]
      places += [spec.origin] if spec.has_location else []
      if any(self.holds(place) for place in places):
        raise ImportError(f"Nothing is imported from a run folder, as "
                          f"'{fullname}' would be.", name=fullname)
    return None

  def holds(self, place: str) -> bool:
    """Whether a path is in one of the folders, by name or by links."""
    return any(
        os.path.commonpath((folder, path)) == folder
        for path in (os.path.abspath(place), os.path.realpath(place))
        for folder in self.folders)


_refusal = _Refusal()
_adding = threading.Lock()


def add(folder: pathlib.Path):
  """Import nothing from a folder, and what is in it, from now on."""
  with _adding:
    _refusal.folders |= {os.path.abspath(folder), os.path.realpath(folder)}
    # What is imported by a name of its own is looked for elsewhere.
    sys.path[:] = [entry for entry in sys.path if not _refusal.holds(entry)]
    if _refusal not in sys.meta_path:
      sys.meta_path.insert(0, _refusal)
