"""Records and disturbs the system calls of the test process with `strace`."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

_SET_TRACER = 0x59616D61  # PR_SET_PTRACER; allows a child to trace this process.


def _can_trace() -> bool:
  return (
    bool(shutil.which("strace"))
    and not subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode
  )


needs_strace = pytest.mark.skipif(not _can_trace(), reason="strace is missing, or may not trace.")


@contextlib.contextmanager
def recorded(path: os.PathLike, *options: str) -> Iterator[list[str]]:
  """Context that records the system calls that access a file or a folder.

  Args:
    path: Path of the file or folder. Lines that do not contain it are left out.
    options: Further options of strace.

  Yields:
    List that contains the lines of strace after the context.
  """
  ctypes.CDLL(None).prctl(_SET_TRACER, ctypes.c_ulong(2**64 - 1), 0, 0, 0)
  lines: list[str] = []
  with tempfile.NamedTemporaryFile("r") as output:
    strace = subprocess.Popen(
      ["strace", "-f", "-y", "-p", str(os.getpid()), "-o", output.name, *options],
      stderr=subprocess.PIPE,
      text=True,
    )
    try:
      assert "attached" in strace.stderr.readline()
      yield lines
    finally:
      strace.send_signal(signal.SIGINT)  # Detaches.
      strace.communicate()
    lines += [line for line in output if str(path) in line]


@contextlib.contextmanager
def failing(call: str, error: str, path: os.PathLike) -> Iterator[None]:
  """Context in which system calls that access a file fail.

  Args:
    call: Name of the system call, such as "read".
    error: Name of the error, such as "EIO".
    path: Path of the file.

  Yields:
    None.
  """
  with recorded(path, "-P", str(path), "-e", f"inject={call}:error={error}") as lines:
    yield
  assert any("INJECTED" in line for line in lines)
