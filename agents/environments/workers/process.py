"""Starts and ends one worker process, and explains its death."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from agents import errors
from agents.environments.workers import affinity

SECONDS_TO_CLOSE = 3.0  # Limit for closing the environments of a worker.
_SECONDS_TO_DUMP = 1.0
# Causes of death by exit code.
_SIGNAL_NAMES = {-number: number.name for number in signal.Signals}
_HINTS = {
  -signal.SIGKILL: ". Was the machine out of memory?",
  -signal.SIGSEGV: ": an environment's native code crashed.",
}


class WorkerDied(errors.EnvironmentsError):
  """A worker process ended, or was killed, although its work was not done.

  Args:
    message: Text with the cause.
    number: Index of the worker in its pool.
  """

  def __init__(self, message: str, number: int) -> None:
    super().__init__(message)
    self.number = number


class WorkerProcess:
  """A worker process, and a pipe that ends the process when closed.

  Args:
    number: Index of this worker in its pool.
    connection_fd: Socket of the process, which it inherits.
    variables: Environment variables in addition to those of this process.
    core: CPU core of the process; None for any core.

  The methods `poll` and `wait` are those of `subprocess.Popen`.
  """

  def __init__(
    self, number: int, connection_fd: int, variables: dict[str, str], core: int | None
  ) -> None:
    self._number = number
    self.kill_reason = ""  # Set by `kill_unresponsive`.
    self._stacks = tempfile.TemporaryFile()  # Stack traces of the process.
    lifeline, own_end = os.pipe()
    self._lifeline = open(own_end, "wb", buffering=0)
    # The worker inherits that SIGINT is blocked, so that Ctrl-C during its
    # start does not end it. In this process, the signal is only delayed.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
      descriptors = connection_fd, lifeline, self._stacks.fileno()
      self._process = launch(
        "agents.environments.workers.worker_main",
        descriptors,
        variables,
        stdin=subprocess.DEVNULL,
        pass_fds=descriptors,
        start_new_session=True,
      )
      affinity.configure(self.pid, core)
      self.poll, self.wait = self._process.poll, self._process.wait
    except BaseException:
      self.release()
      raise
    finally:
      os.close(lifeline)
      signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # May raise Ctrl-C.

  @property
  def pid(self) -> int:
    """Process id."""
    return self._process.pid

  def kill_unresponsive(self, seconds: float) -> WorkerDied:
    """Kills a process that does not answer, after it has dumped its stacks.

    Args:
      seconds: Time without an answer, for the message.

    Returns:
      The error to raise.
    """
    self._process.send_signal(signal.SIGUSR2)
    deadline, before = time.monotonic() + _SECONDS_TO_DUMP, None
    while (text := self._stack_traces()) != before or (not text and time.monotonic() < deadline):
      before = text
      time.sleep(0.05)
    self.kill()
    self.kill_reason = f"gave no answer for {seconds:g} seconds (env_timeout) and was killed."
    return self.death()

  def release(self) -> None:
    """Closes the lifeline, so that the guard kills all remaining processes."""
    self._lifeline.close()
    self._stacks.close()

  def kill(self) -> None:
    """Kills the process and all processes that its environments started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
      os.killpg(self.pid, signal.SIGKILL)
    self._process.kill()
    # A process that waits for a driver cannot be killed at once.
    with contextlib.suppress(subprocess.TimeoutExpired):
      self.wait(timeout=5)

  def death(self) -> WorkerDied:
    """Returns an error that explains why the process ended."""
    reason = self.kill_reason
    if not reason:
      try:
        code = self.wait(timeout=5)
        name = _SIGNAL_NAMES.get(code, f"signal {-code}")
        reason = (
          f"was killed by {name}{_HINTS.get(code, '')}"
          if code < 0
          else f"exited with code {code}; see its messages above."
        )
      except subprocess.TimeoutExpired:
        reason = "closed its connection."
    text = self._stack_traces().decode(errors="replace")
    trace = f" It was here:\n{text}" if text else ""
    return WorkerDied(f"Worker {self._number} (process {self.pid}) {reason}{trace}", self._number)

  def _stack_traces(self) -> bytes:
    """Returns what the process has written, without moving its position."""
    return os.pread(self._stacks.fileno(), 1 << 20, 0)


def python(code: str) -> list[str]:
  """Returns a command that runs code with the module path of this process.

  `-m` would search the current folder before the packages.

  Args:
    code: Statements, separated by semicolons. `sys` is imported.
  """
  # Python itself ignores entries of `sys.path` that are not strings.
  path = [entry for entry in sys.path if isinstance(entry, str)]
  return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; {code}"]


def launch(
  module: str, arguments: tuple[int, ...], variables: dict[str, str], **options: Any
) -> subprocess.Popen:
  """Starts a fresh interpreter that calls `main` of a module.

  Args:
    module: Name of the module.
    arguments: Arguments of its `main`.
    variables: Environment variables in addition to those of this process.
    options: Arguments of `subprocess.Popen`.

  Returns:
    The process.
  """
  command = python(f"import {module}; {module}.main(*{arguments!r})")
  threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
  return subprocess.Popen(command, env={**threads, **os.environ, **variables}, **options)
