"""Starts, observes and ends one worker process."""

import contextlib
import functools
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from agents import errors
from agents.environments.workers import affinity, protocol

SECONDS_TO_CLOSE = 3.0  # Limit for closing the environments of a worker.
_SECONDS_TO_DUMP = 1.0
# Causes of death by exit code.
_SIGNAL_NAMES = {-number: number.name for number in signal.Signals}
_HINTS = {-signal.SIGKILL: ". Was the machine out of memory?",
          -signal.SIGSEGV: ": an environment's native code crashed."}


class WorkerDied(errors.EnvironmentsError):
  """A worker process ended, or was killed, although its work was not done.

  Args:
    message: Text with the cause.
    number: Number of the worker.
  """

  def __init__(self, message: str, number: int):
    super().__init__(message)
    self.number = number


class WorkerProcess:
  """A worker process, its socket, and a pipe that ends the process when closed.

  Args:
    number: Number of this worker in its pool.
    variables: Environment variables in addition to those of this process.
    interrupt_fd: Descriptor that also wakes `poll`; None for none.
    timeout: Limit in seconds for pauses within a message; 0 disables it.
    core: CPU core of the process; None for any core.

  The attribute `since` is the time of the latest request or answer.
  """

  def __init__(self, number: int, variables: dict[str, str],
               interrupt_fd: int | None, timeout: float,
               core: int | None = None):
    self.number = number
    self._variables = variables
    self._interrupt_fd = interrupt_fd
    self._timeout = timeout
    self._core = core
    self.since = 0.0
    self._start()

  def _start(self):
    self.connection, remote_end = socket.socketpair()
    self.connection.setblocking(False)
    self._reason = ""  # Reason why the pool has killed the process.
    self.poll = select.poll()
    self.poll.register(self.connection, select.POLLIN)
    if self._interrupt_fd is not None:
      self.poll.register(self._interrupt_fd, select.POLLIN)
    self._stacks = tempfile.TemporaryFile()  # Stack traces of the process.
    lifeline, own_end = os.pipe()
    self._lifeline = open(own_end, "wb", buffering=0)
    # The worker inherits that SIGINT is blocked, so that Ctrl-C during its
    # start does not end it. In this process, the signal is only delayed.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
      remote_end.setblocking(True)  # Despite `socket.setdefaulttimeout`.
      descriptors = remote_end.fileno(), lifeline, self._stacks.fileno()
      self.process = launch(
          "agents.environments.workers.worker_main", descriptors,
          self._variables, stdin=subprocess.DEVNULL, pass_fds=descriptors,
          start_new_session=True)
      affinity.configure(self.process.pid, self._core)
    finally:
      signal.pthread_sigmask(signal.SIG_SETMASK, mask)
      remote_end.close()
      os.close(lifeline)

  def replace(self):
    """Ends the process, whatever its state, and starts a new one.

    Raises:
      WorkerDied: If no process can be started.
    """
    self.connection.close()
    self.end()
    self.release()
    try:
      self._start()
    except OSError as error:
      raise WorkerDied(
          f"Worker {self.number} (process {self.process.pid}) cannot be "
          f"replaced: {error}", self.number) from None

  def send(self, data: bytes, descriptor: int | None = None):
    """Sends a message. The next `receive` reports a failure.

    Args:
      data: Number of the block to step, or a request; see `protocol`.
      descriptor: Shared memory of the block, for the request "open".
    """
    self.since = time.monotonic()
    try:
      if descriptor is not None:
        self.connection.send(protocol.DESCRIPTOR)
        socket.send_fds(self.connection, [b"\0"], [descriptor])
      sent = self.connection.send(data)
      while sent < len(data):
        sent += self._retry(
            select.POLLOUT, self.connection.send, memoryview(data)[sent:])
    except BlockingIOError:  # The process has left thousands of bytes unread.
      self.kill(self._timeout)
    except (OSError, WorkerDied):
      pass  # The next `receive` finds the connection closed.

  def receive(self) -> protocol.Answer | None:
    """Receives an answer after its first byte has arrived.

    Returns:
      The answer, or None if the process only reports that it is alive.

    Raises:
      WorkerDied: If the process has ended, stopped within a message, or could
        not receive the request.
    """
    self.since = time.monotonic()
    try:
      kind = self.connection.recv(1)
      if kind == protocol.ACK:
        return protocol.DONE
      if kind == protocol.RESULT:
        return protocol.receive(functools.partial(
            self._retry, select.POLLIN, self.connection.recv))
      if kind == protocol.ALIVE:
        return None
    except (OSError, EOFError):
      pass
    raise self._death()

  def check_alive(self):
    """Raises WorkerDied if no answer has arrived and none will arrive."""
    with contextlib.suppress(OSError):  # No answer has arrived.
      if self.connection.recv(1, socket.MSG_PEEK):
        return
    if self._reason or self.process.poll() is not None:
      raise self._death()

  def kill(self, seconds: float) -> WorkerDied:
    """Kills a process that does not answer, after it has dumped its stacks.

    Args:
      seconds: Time without an answer, for the message.

    Returns:
      The error to raise.
    """
    self.process.send_signal(signal.SIGUSR2)
    deadline, before = time.monotonic() + _SECONDS_TO_DUMP, None
    while (text := self._stack_traces()) != before or (
        not text and time.monotonic() < deadline):
      before = text
      time.sleep(0.05)
    self.end()
    self._reason = (f"gave no answer for {seconds:g} seconds (env_timeout) and "
                    "was killed.")
    return self._death()

  def release(self):
    """Closes the lifeline, so that the guard kills all remaining processes."""
    self._lifeline.close()
    self._stacks.close()

  def end(self):
    """Kills the process and all processes that its environments started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
      os.killpg(self.process.pid, signal.SIGKILL)
    self.process.kill()
    # A process that waits for a driver cannot be killed at once.
    with contextlib.suppress(subprocess.TimeoutExpired):
      self.process.wait(timeout=5)

  def _retry(self, event: int, transfer: Callable[..., Any], *args) -> Any:
    """Sends or receives as soon as the process is ready for it."""
    start = time.monotonic()
    while True:
      try:
        return transfer(*args)
      except BlockingIOError:
        ready = select.poll()
        ready.register(self.connection, event)
        if not ready.poll(1000) and self.process.poll() is not None:
          raise self._death() from None
        if self._timeout and time.monotonic() > start + self._timeout:
          raise self.kill(self._timeout) from None

  def _death(self) -> WorkerDied:
    """Returns an error that explains why the process ended."""
    reason = self._reason
    if not reason:
      try:
        code = self.process.wait(timeout=5)
        name = _SIGNAL_NAMES.get(code, f"signal {-code}")
        reason = (f"was killed by {name}{_HINTS.get(code, '')}" if code < 0 else
                  f"exited with code {code}; see its messages above.")
      except subprocess.TimeoutExpired:
        reason = "closed its connection."
    text = self._stack_traces().decode(errors="replace")
    trace = f" It was here:\n{text}" if text else ""
    return WorkerDied(
        f"Worker {self.number} (process {self.process.pid}) {reason}{trace}",
        self.number)

  def _stack_traces(self) -> bytes:
    """Returns what the process has written, without moving its position."""
    return os.pread(self._stacks.fileno(), 1 << 20, 0)


def launch(module: str, arguments: tuple[int, ...], variables: dict[str, str],
           **options) -> subprocess.Popen:
  """Starts a fresh interpreter that calls `main` of a module.

  Args:
    module: Name of the module.
    arguments: Arguments of its `main`.
    variables: Environment variables in addition to those of this process.
    options: Arguments of `subprocess.Popen`.

  Returns:
    The process.
  """
  # `-m` is not used, because it would search the current folder before the
  # packages. Python itself ignores entries of `sys.path` that are not strings.
  path = [entry for entry in sys.path if isinstance(entry, str)]
  code = (f"import sys; sys.path[:] = {path!r}; "
          f"import {module}; {module}.main(*{arguments!r})")
  threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
             "MKL_NUM_THREADS": "1"}
  return subprocess.Popen(
      [sys.executable, "-c", code], env={**threads, **os.environ, **variables},
      **options)
