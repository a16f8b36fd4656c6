"""Finds run folders, and keeps a reader for each."""

import os
import pathlib
import time

from agents import config as config_lib
from agents.live_page import run_reader

_MIN_PAUSE = 2.0  # Seconds between two searches for new runs.
_PAUSE_RATIO = 100  # Minimum pause relative to the duration of a search.


class Logdir:
  """All runs in a folder, at any depth.

  Attributes:
    path: Path of the folder.

  Args:
    path: Run folder, or folder that contains run folders.

  Raises:
    ConfigError: If there is no such folder.
  """

  def __init__(self, path: str | os.PathLike) -> None:
    self.path = pathlib.Path(path).expanduser().resolve()
    if not self.path.is_dir():
      raise config_lib.ConfigError(
        f"{self.path}: there is no such folder. Expected a run folder of train.py, or a folder "
        "that contains run folders."
      )
    self._runs: dict[str, run_reader.RunReader] = {}
    self._next_search = 0.0

  def runs(self) -> dict[str, run_reader.RunReader]:
    """Returns readers of the current runs, with the newest rows.

    Returns:
      Readers by path in the folder, in the order of their names.
    """
    start = time.monotonic()
    if start >= self._next_search:
      found = {str(path.relative_to(self.path)): path for path in self._search()}
      self._runs = {
        name: self._runs.get(name) or run_reader.RunReader(path) for name, path in found.items()
      }
      # Searching a large folder, such as the home folder, takes long.
      end = time.monotonic()
      self._next_search = end + max(_MIN_PAUSE, _PAUSE_RATIO * (end - start))
    for run in self._runs.values():
      run.refresh()
    return self._runs

  def find(self, name: str) -> run_reader.RunReader | None:
    """Returns the reader of a run with the newest rows, or None.

    Args:
      name: Key of `runs`.
    """
    if run := self._runs.get(name):
      run.refresh()
    return run

  def _search(self) -> list[pathlib.Path]:
    """Returns the run folders; does not follow links."""
    found = []
    for parent, folders, files in os.walk(self.path):
      if "config.yaml" in files:
        found.append(pathlib.Path(parent))
        folders.clear()  # Folders of crashes contain configs, too.
      folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(found, key=lambda path: path.name)
