"""Locks a run folder, so that only one process trains the run.

The file `lock` contains host and id of the process that trains the run. The
operating system releases the lock when the process ends. On network file
systems, a lock may be invisible to other hosts. Therefore a process never takes
over a lock file that contains another host. A process that ends normally clears
the file.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import NamedTuple

from agents import config as config_lib
from agents.training.run_folder import atomic_write

_descriptors: set[int] = set()  # Locked files of this process.


class Owner(NamedTuple):
  """The process that trains a run."""

  host: str
  process: int

  def __str__(self) -> str:
    return f"process {self.process} on {self.host}"


@contextlib.contextmanager
def locked(folder: pathlib.Path, lost: Owner | None = None) -> Iterator[None]:
  """Locks a run folder against other training processes.

  Args:
    folder: Path of the run folder.
    lost: Process of another host that has ended, if known.

  Yields:
    None.

  Raises:
    ConfigError: If another process trains the run, may train it, or if the file
      system has no locks.
    WriteError: If the file cannot be written.
  """
  path = folder / "lock"
  with atomic_write.convert_errors(path):
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
  _descriptors.add(descriptor)
  try:
    _acquire(descriptor, folder)
    before = owner(folder)
    if before and before.host != socket.gethostname() and before != lost:
      raise config_lib.ConfigError(
        f"{folder} may still be trained by {before}, which has not released its lock. If that "
        f"process has ended, delete {path}, and run this command again."
      )
    text = json.dumps(Owner(socket.gethostname(), os.getpid())._asdict())
    with atomic_write.convert_errors(path):
      os.ftruncate(descriptor, 0)
      os.pwrite(descriptor, text.encode(), 0)
      os.fsync(descriptor)  # Other hosts then see the text at once.
    try:
      yield
    finally:
      _clear(descriptor)
  finally:
    if descriptor in _descriptors:  # False in a forked process.
      _descriptors.remove(descriptor)
      os.close(descriptor)


def clear() -> None:
  """Removes this process from its lock files, before it ends."""
  for descriptor in [*_descriptors]:
    _clear(descriptor)


def owner(folder: pathlib.Path) -> Owner | None:
  """Returns the process that trains a run, or that was killed while it did.

  Args:
    folder: Path of the run folder.

  Returns:
    None if no process trains the run, or if the lock file cannot be read.
  """
  with contextlib.suppress(OSError, ValueError, TypeError):
    return Owner(**json.loads((folder / "lock").read_text()))
  return None


def holder(folder: pathlib.Path) -> Owner | None:
  """Returns the living process of this host that trains a run.

  Args:
    folder: Path of the run folder.

  Returns:
    None if no process of this host holds the lock.
  """
  found = owner(folder)
  if not (found and found.host == socket.gethostname() and _is_alive(found.process)):
    return None
  with contextlib.suppress(OSError):
    descriptor = os.open(folder / "lock", os.O_RDONLY)
    try:
      fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
      return found
    finally:
      os.close(descriptor)
  return None


def _is_alive(process: int) -> bool:
  # Ids below 1 would select groups of processes.
  if not isinstance(process, int) or process < 1:
    return False
  try:
    os.kill(process, 0)
  except (ProcessLookupError, OverflowError):
    return False
  except PermissionError:  # The process belongs to another user.
    pass
  return True


def _clear(descriptor: int) -> None:
  if descriptor in _descriptors:
    with contextlib.suppress(OSError):
      os.ftruncate(descriptor, 0)


def _acquire(descriptor: int, folder: pathlib.Path) -> None:
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    raise config_lib.ConfigError(
      f"{folder} is being trained by another process ({owner(folder) or 'unknown'})."
    ) from None
  except OSError as error:
    raise config_lib.ConfigError(
      f"{folder} can't be locked: {error.strerror}. Without locks, two processes could train this "
      "run. Move the folder to a file system with locks, such as a local disk, or enable the "
      "locks of its file system (NFS: mount it without the option `nolock`)."
    ) from None


def _close_in_child() -> None:
  """Closes the locked files in a forked process, which may outlive this one."""
  for descriptor in _descriptors:
    os.close(descriptor)
  _descriptors.clear()


os.register_at_fork(after_in_child=_close_in_child)
