"""Finds processes that a test has started and that still run."""

import contextlib
import ctypes
import os
import pathlib
import signal
import sys
import time
from collections.abc import Iterable

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2).
# Processes of the standard library that serve all tests.
_SERVERS = b"from multiprocessing.forkserver", b"from multiprocessing.resource_tracker"


def adopt_orphans() -> None:
  """Makes orphaned descendants of this process its children."""
  if sys.platform == "linux":
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def running(known: Iterable[int] = (), pid: int | None = None) -> dict[int, str]:
  """Returns running descendants of a process.

  Args:
    known: Ids of processes to leave out together with their descendants.
    pid: Id of the process; by default the current one.

  Returns:
    Command lines by process id, parents before their children.
  """
  found = {}
  pid = pid or os.getpid()
  # Each thread has its own children.
  for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
    with contextlib.suppress(OSError):  # The process or the thread has ended.
      for child in map(int, path.read_text().split()):
        command = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
        status = pathlib.Path(f"/proc/{child}/stat").read_text()
        # Forks of the fork server have its command line.
        is_server = pid == os.getpid() and any(text in command for text in _SERVERS)
        has_ended = status.rpartition(")")[2].split()[0] in "ZX"
        if not (has_ended or is_server or child in known):
          found[child] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        if is_server or child not in known:
          found |= running(known, child)
  return found


def wait(known: Iterable[int], seconds: float) -> dict[int, str]:
  """Waits until all descendants of this process have ended.

  Args:
    known: See `running`.
    seconds: Time limit. After it, the remaining processes are killed.

  Returns:
    Result of `running` after the time limit.
  """
  deadline = time.monotonic() + seconds
  while (left := running(known)) and time.monotonic() < deadline:
    time.sleep(0.05)
  # A shell whose command is killed first would start the next one.
  for pid in left:
    with contextlib.suppress(OSError):
      os.kill(pid, signal.SIGKILL)
  return left
