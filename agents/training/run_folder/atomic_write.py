"""What is written to disk is there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import IO

from agents import errors


class WriteError(errors.RunError):
  """Something could not be written; what was written before is complete."""


@contextlib.contextmanager
def convert_errors(path: pathlib.Path) -> Iterator[None]:
  """Say of an error inside that a path can't be written.

  Raises:
    WriteError: Instead of an OSError.
  """
  try:
    yield
  except OSError as error:
    raise WriteError(
        f"{path} can't be written: {error.strerror or error}. What the run has "
        "saved before is complete.") from error


@contextlib.contextmanager
def open_file(path: pathlib.Path) -> Iterator[IO[bytes]]:
  """Open a file that takes a path's place once all is written.

  Raises:
    WriteError: If it can't be; what was there before still is.
  """
  # Other machines may write the same.
  temporary = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.tmp")
  try:
    with convert_errors(path):
      with open(temporary, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
      os.replace(temporary, path)
      _sync_folder(path.parent)
  except BaseException:
    with contextlib.suppress(OSError):
      temporary.unlink()
    raise


def _sync_folder(folder: pathlib.Path):
  """Make a rename within the folder survive a power cut."""
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
