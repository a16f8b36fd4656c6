"""Runs Python scripts in separate processes."""

import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterable

_ROOT = pathlib.Path(__file__).parents[2]


def start(code: str, folder: pathlib.Path) -> subprocess.Popen:
  """Starts a script in its own process group, as a terminal does.

  Args:
    code: Text of the script.
    folder: The script is written here; "cwd" below is its current folder.
  """
  path = folder / "script.py"
  path.write_text(code)
  (folder / "cwd").mkdir(exist_ok=True)
  return subprocess.Popen(
      [sys.executable, str(path)], cwd=folder / "cwd", text=True,
      stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
      env={**os.environ, "PYTHONPATH": str(_ROOT)})


def run(code: str, folder: pathlib.Path) -> tuple[str, str]:
  """Runs a script to its end; return its stdout and stderr."""
  process = start(code, folder)
  try:
    stdout, stderr = process.communicate(timeout=50)
  finally:
    process.kill()
  assert process.returncode == 0, stderr
  return stdout, stderr


def runs(pid: int) -> bool:
  """Returns whether a process exists and has not ended."""
  try:
    with open(f"/proc/{pid}/stat") as file:
      return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
  except FileNotFoundError:
    return False


def wait_for_ends(pids: Iterable[int], seconds: float) -> set[int]:
  """Returns the processes that still run after this time."""
  deadline = time.monotonic() + seconds
  while (left := set(filter(runs, pids))) and time.monotonic() < deadline:
    time.sleep(0.02)
  return left
