"""Atomic file writes: a reader sees the old file or the complete new one."""

import contextlib
import os
import pathlib
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
  # The temporary name is unique, because hosts that share the folder may write
  # the same file at the same time.
  temporary = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.tmp")
  try:
    with convert_errors(path):
      with open(temporary, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
      os.replace(temporary, path)
      descriptor = os.open(path.parent, os.O_RDONLY)
      try:
        os.fsync(descriptor)  # The renaming then survives a power cut.
      finally:
        os.close(descriptor)
  except BaseException:
    with contextlib.suppress(OSError):
      temporary.unlink()
    raise
