"""Records the code that this user's own settings name.

Every new run records its modules and wrappers: later commands, which may run in
another folder, find and permit the same code. The records lie outside of the
run folder, because the files of another person's run must not select the code
to execute.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.training.run_folder import atomic_write, named_modules


class RecordedModule(NamedTuple):
  """Files that the import of a module executed when a run began."""

  module: str
  folder: str  # Folder on Python's path.
  files: dict[str, str]  # SHA-256 by path, relative to `folder`.

  @property
  def paths(self) -> list[pathlib.Path]:
    """Absolute paths of the files."""
    return [pathlib.Path(self.folder, name) for name in self.files]

  @property
  def unchanged(self) -> bool:
    """Whether the files have the recorded contents."""
    with contextlib.suppress(OSError):
      return [*map(_digest, self.paths)] == [*self.files.values()]
    return False


def state_folder() -> pathlib.Path:
  """Returns the folder of this user for files that belong to no run."""
  state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
  return pathlib.Path(state).expanduser() / "batched-ppo"


def record(config: config_lib.Config) -> None:
  """Records the modules and wrappers that the settings name.

  Args:
    config: Settings of a new run of this user.
  """
  # Without a home folder, later commands need permission for the modules.
  with contextlib.suppress(OSError, atomic_write.WriteError):
    for module in named_modules.names(config):
      files = named_modules.files(module, sys.path) or []
      if not all(map(named_modules.is_installed, files)):
        folder = named_modules.parent_folder(module, files[-1])
        digests = {os.path.relpath(file, folder): _digest(file) for file in files}
        _write(RecordedModule(module, str(folder), digests)._asdict())
    for wrapper in config.env.wrappers:
      _write(wrapper)


def contains_wrapper(wrapper: dict[str, Any]) -> bool:
  """Returns whether a run of this user had a wrapper with the same arguments.

  Args:
    wrapper: Element of `env.wrappers`.
  """
  return _path(wrapper).exists()


def find(module: str, files: Sequence[pathlib.Path]) -> list[RecordedModule]:
  """Returns the records of a module with the given files.

  Args:
    module: Name of the module.
    files: Absolute paths of the files, parent packages first.
  """
  return [entry for entry in _entries(module) if entry.paths == files]


def folder(module: str, code: Mapping[str, str]) -> str | None:
  """Returns the recorded folder of a module, or None.

  If several folders contained a module of this name, those with unchanged files
  are preferred, then the folder with the files that started the run, then the
  folder of the newest run.

  Args:
    module: Name of the module.
    code: Digests of the code that started the run, by file name; see
      `provenance.code`.
  """

  def preference(entry: RecordedModule) -> tuple[bool, bool]:
    digests = {name: digest[:16] for name, digest in entry.files.items()}
    return entry.unchanged, digests.items() <= code.items()

  entries = sorted(_entries(module), key=preference)
  return entries[-1].folder if entries else None


def _entries(module: str) -> Iterator[RecordedModule]:
  """Yields the records of a module, the oldest first."""
  paths = []
  with contextlib.suppress(OSError):
    paths = sorted(_records().glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
  for path in paths:
    with contextlib.suppress(OSError, ValueError, TypeError):
      entry = RecordedModule(**json.loads(path.read_text()))
      if entry.module == module and os.path.isdir(entry.folder):
        yield entry


def _write(entry: dict[str, Any]) -> None:
  path = _path(entry)
  path.parent.mkdir(parents=True, exist_ok=True)
  with atomic_write.open_file(path) as file:
    file.write(json.dumps(entry, indent=2).encode())


def _path(entry: dict[str, Any]) -> pathlib.Path:
  text = json.dumps(entry, sort_keys=True)
  return _records() / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def _digest(path: pathlib.Path) -> str:
  return hashlib.sha256(path.read_bytes()).hexdigest()


def _records() -> pathlib.Path:
  return state_folder() / "modules"
