"""Atomic writes: a reader sees the old file or the complete new one."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
from collections.abc import Iterator
from typing import IO

from agents import errors


class WriteError(errors.RunError):
  """A file cannot be written. Files that were written earlier are complete."""


@contextlib.contextmanager
def convert_errors(path: pathlib.Path) -> Iterator[None]:
  """Context that converts OSErrors into WriteErrors with the path of a file.

  Args:
    path: File or folder that the context writes.

  Yields:
    None.

  Raises:
    WriteError: If the context raises an OSError.
  """
  try:
    yield
  except OSError as error:
    raise WriteError(
      f"{path} can't be written: {error.strerror or error}. Files that the "
      "run saved before are complete."
    ) from error


@contextlib.contextmanager
def open_file(path: pathlib.Path) -> Iterator[IO[bytes]]:
  """Opens a temporary file that replaces `path` when the context ends.

  After an error in the context, the temporary file is deleted and `path` is
  unchanged.

  Args:
    path: File to create or replace.

  Yields:
    Binary file to write.

  Raises:
    WriteError: If the file cannot be written.
  """
  with _renamed_to(path) as temporary, open(temporary, "wb") as file:
    yield file
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def new_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Creates a temporary folder that is renamed when the context ends.

  After an error in the context, the temporary folder is deleted.

  Args:
    path: Folder to create. Missing parents are created, too.

  Yields:
    Path of the temporary folder. Write its files with `open_file`.

  Raises:
    WriteError: If the folder cannot be written.
  """
  with _renamed_to(path) as temporary:
    temporary.mkdir(parents=True)
    yield temporary


@contextlib.contextmanager
def _renamed_to(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Context that renames a temporary path, or deletes it after an error."""
  # The temporary name is unique, because hosts that share the folder may write
  # the same file at the same time.
  temporary = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.tmp")
  try:
    with convert_errors(path):
      yield temporary
      os.replace(temporary, path)
      descriptor = os.open(path.parent, os.O_RDONLY)
      try:
        os.fsync(descriptor)  # The renaming then survives a power cut.
      finally:
        os.close(descriptor)
  except BaseException:
    _remove(temporary)
    raise


def remove_abandoned(folder: pathlib.Path) -> None:
  """Deletes the temporary files that dead processes of this host have left.

  Files of other hosts stay, because their processes may be alive.

  Args:
    folder: Folder of the files.
  """
  for path in folder.glob("*.tmp"):
    name = re.fullmatch(r"[^.]*\.(.+)-(\d+)\.tmp", path.name)
    if name and name[1] == socket.gethostname() and not _is_alive(int(name[2])):
      _remove(path)


def _is_alive(pid: int) -> bool:
  """Returns whether another process of this host has this id."""
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  except OSError:  # The process belongs to another user.
    pass
  return pid != os.getpid()


def _remove(path: pathlib.Path) -> None:
  with contextlib.suppress(OSError):
    if path.is_dir():
      shutil.rmtree(path)
    else:
      path.unlink()
