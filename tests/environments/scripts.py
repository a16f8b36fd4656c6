"""Runs Python scripts in separate processes."""

import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterable

_ROOT = pathlib.Path(__file__).parents[2]


def start(code: str, folder: pathlib.Path) -> subprocess.Popen:
  """Starts a script in a new process group, as a terminal does.

  Args:
    code: Text of the script.
    folder: Folder of the script's file. Its subfolder "cwd" becomes the current
      folder of the script.

  Returns:
    The process, with pipes for stdout and stderr.
  """
  path = folder / "script.py"
  path.write_text(code)
  (folder / "cwd").mkdir(exist_ok=True)
  return subprocess.Popen(
    [sys.executable, str(path)],
    cwd=folder / "cwd",
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    start_new_session=True,
    env={**os.environ, "PYTHONPATH": str(_ROOT)},
  )


def run(code: str, folder: pathlib.Path) -> tuple[str, str]:
  """Runs a script, which must succeed; returns its stdout and stderr."""
  process = start(code, folder)
  try:
    stdout, stderr = process.communicate(timeout=50)
  finally:
    process.kill()
  assert process.returncode == 0, stderr
  return stdout, stderr


def is_running(pid: int) -> bool:
  """Returns whether a process exists and has not ended."""
  try:
    with open(f"/proc/{pid}/stat") as file:
      return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
  except FileNotFoundError:
    return False


def wait_for_exit(pids: Iterable[int], timeout: float) -> set[int]:
  """Waits until processes have ended.

  Args:
    pids: Process ids.
    timeout: Limit in seconds.

  Returns:
    The processes that are still running after the timeout.
  """
  deadline = time.monotonic() + timeout
  running = set(filter(is_running, pids))
  while running and time.monotonic() < deadline:
    time.sleep(0.02)
    running = set(filter(is_running, running))
  return running
