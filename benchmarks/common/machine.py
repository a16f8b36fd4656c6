"""What benchmarks share: an idle machine, packages, processes, memory."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable


class Failed(RuntimeError):
  """A measuring process failed; the message ends with what it printed."""


def warn_if_busy():
  """Tell the user that other programs will disturb the measurement."""
  if (load := os.getloadavg()[0]) > 0.3:
    print(f"Warning: the machine is busy (load {load:.1f}).", flush=True)


def require(*modules: str):
  """End the program unless all these can be imported."""
  missing = [name for name in modules if not importlib.util.find_spec(name)]
  if missing:
    raise SystemExit(
        f"This needs {' and '.join(missing)}: pip install -e '.[benchmarks]'")


def python(*args: str, variables: dict[str, str] | None = None) -> str:
  """Run Python in a process of its own and return what it prints.

  Args:
    args: Of the interpreter, such as "-m" and a module.
    variables: Environment variables, beside those of this process.
  Raises:
    Failed: If the exit code is not zero.
  """
  done = subprocess.run(
      [sys.executable, *args], env={**os.environ, **(variables or {})},
      capture_output=True, text=True, errors="replace")
  if done.returncode:
    raise Failed(f"python {' '.join(args)} failed with exit code "
                 f"{done.returncode}:\n{done.stderr[-4000:]}")
  return done.stdout


def memory(pids: Iterable[int]) -> int | None:
  """Return the bytes that processes need together; None where not on Linux.

  This is their proportional set size, in which shared pages count once, without
  files that are mapped: libraries are there for all programs together.
  """
  total = 0
  for pid in pids:
    try:
      text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
      return None
    total += proportional_bytes(text)
  return total


def release():
  """Return to the system what this process has freed, where that is possible.

  Compiling leaves some hundred MB that would hide what is really needed.
  """
  if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
    trim(0)


def proportional_bytes(text: str) -> int:
  """Return the proportional set size in a `smaps_rollup`, without files."""
  sizes = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE))
  return 1024 * (int(sizes["Pss"]) - int(sizes.get("Pss_File", 0)))
