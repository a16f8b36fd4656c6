"""Load and memory of the machine, optional packages, and child processes."""

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


class ProcessFailed(RuntimeError):
  """A child process failed; the message ends with its standard error."""


def warn_if_busy():
  """Prints a warning if other programs would disturb a measurement."""
  if (load := os.getloadavg()[0]) > 0.3:
    print(f"Warning: the machine is busy (load {load:.1f}).", flush=True)


def require(*modules: str):
  """Ends the program if a package is not installed.

  Args:
    modules: Names of top-level modules.

  Raises:
    SystemExit: If a module is missing; the message has the install command.
  """
  missing = [name for name in modules if not importlib.util.find_spec(name)]
  if missing:
    raise SystemExit(f"This needs {' and '.join(missing)}: pip install -e '.[benchmarks]'")


def python(*args: str, variables: Mapping[str, str] | None = None) -> str:
  """Runs Python in a child process.

  Args:
    args: Arguments of the interpreter, such as "-m" and a module.
    variables: Environment variables to add to those of this process.

  Returns:
    Standard output of the child process.

  Raises:
    ProcessFailed: If the exit code is not zero.
  """
  completed = subprocess.run(
    [sys.executable, *args],
    env={**os.environ, **(variables or {})},
    capture_output=True,
    text=True,
    errors="replace",
  )
  if completed.returncode:
    raise ProcessFailed(
      f"python {' '.join(args)} failed with exit code "
      f"{completed.returncode}:\n{completed.stderr[-4000:]}"
    )
  return completed.stdout


def memory(pids: Iterable[int]) -> int | None:
  """Returns the memory of processes in bytes; None if /proc does not show it.

  The result is the proportional set size without mapped files. Shared pages
  count once, and libraries do not count because all programs share them.

  Args:
    pids: Process ids.
  """
  total = 0
  for pid in pids:
    try:
      text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
      return None
    total += proportional_bytes(text)
  return total


def release_memory():
  """Returns freed memory of this process to the system, if the C library can.

  Compilation leaves some hundred MB of freed memory, which would hide the
  memory that training needs.
  """
  if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
    trim(0)


def proportional_bytes(text: str) -> int:
  """Returns the proportional set size without mapped files, in bytes.

  Args:
    text: Contents of `/proc/PID/smaps_rollup`.
  """
  sizes = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE))
  return 1024 * (int(sizes["Pss"]) - int(sizes.get("Pss_File", 0)))
