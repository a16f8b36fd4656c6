"""One worker process, seen from the trainer."""

import contextlib
import functools
import os
import pickle
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

SECONDS_TO_CLOSE = 3.0  # For the environments of a worker.
_SECONDS_TO_DUMP = 1.0


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
    timeout: Seconds that the process may pause within a message; 0: forever.
    core: CPU core that it stays on; None for any.

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
    self._unreachable: WorkerDied | None = None  # Set by a failed send.
    self.poll = select.poll()
    self.poll.register(self.connection, select.POLLIN)
    if self._interrupt_fd is not None:
      self.poll.register(self._interrupt_fd, select.POLLIN)
    self._stacks = tempfile.TemporaryFile()  # Stack traces of hangs, crashes.
    lifeline, self._lifeline = os.pipe()
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
    self.disconnect()
    self._kill()
    self.release()
    try:
      self._start()
    except OSError as error:
      raise WorkerDied(f"{self._name} cannot be replaced: {error}",
                       self.number) from None

  def send(self, byte: bytes):
    """Sends one byte. The next `receive` reports a failure.

    Args:
      byte: Number of the block to step; see `protocol`.
    """
    self.since = time.monotonic()
    try:
      self.connection.send(byte)
    except OSError as error:
      self._handle_send_error(error)

  def request(self, message: tuple[int, str, tuple] | bytes,
              descriptor: int | None = None):
    """Sends a request. The next `receive` reports a failure.

    Args:
      message: Block number, method name and arguments, or their pickle.
      descriptor: Shared memory of the block, for the method "open".
    """
    self.since = time.monotonic()
    try:
      if descriptor is not None:
        self.connection.send(protocol.DESCRIPTOR)
        socket.send_fds(self.connection, [b"\0"], [descriptor])
      data = memoryview(protocol.encode(protocol.REQUEST, message))
      while data:
        data = data[self._retry(select.POLLOUT, functools.partial(
            self.connection.send, data)):]
    except WorkerDied as death:
      self._unreachable = death
    except OSError as error:
      self._handle_send_error(error)

  def receive(self) -> protocol.Answer | None:
    """Receives an answer after its first byte has arrived.

    Returns:
      The answer, or None if the process only reports that it is alive.

    Raises:
      WorkerDied: If the process has ended, stopped within a message, or could
        not receive the request.
    """
    if self._unreachable:
      raise self._unreachable
    self.since = time.monotonic()
    try:
      kind = self.connection.recv(1)
      if kind == protocol.ACK:
        return protocol.Answer()
      if kind == protocol.RESULT:
        size, = protocol.HEADER.unpack(
            self._receive_bytes(protocol.HEADER.size))
        return pickle.loads(self._receive_bytes(size))
      if kind == protocol.ALIVE:
        return None
    except (OSError, EOFError):
      pass
    raise self._death()

  def check_alive(self):
    """Raises WorkerDied if no answer has arrived and none will arrive."""
    if self._unreachable:
      raise self._unreachable
    with contextlib.suppress(OSError):  # No answer yet, or never.
      if self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
        return
    if self.process.poll() is not None:
      raise self._death()

  def kill(self, seconds: float) -> WorkerDied:
    """Kills a process that does not answer, after it has dumped its stacks.

    Args:
      seconds: Time that it did not answer, for the message.

    Returns:
      The error to raise.
    """
    with contextlib.suppress(OSError):
      os.kill(self.process.pid, signal.SIGUSR2)
    deadline, before = time.monotonic() + _SECONDS_TO_DUMP, -1
    while (size := os.fstat(self._stacks.fileno()).st_size) != before or (
        not size and time.monotonic() < deadline):
      before = size
      time.sleep(0.05)
    self._kill()
    return WorkerDied(
        f"{self._name} gave no answer for {seconds:g} seconds (env_timeout) "
        f"and was killed.{self._stack_traces()}", self.number)

  def disconnect(self):
    """Closes the connection, so that the process closes its environments."""
    self.connection.close()

  def release(self):
    """Closes the lifeline, so that the guard kills all remaining processes."""
    if self._lifeline >= 0:
      os.close(self._lifeline)
    self._lifeline = -1
    self._stacks.close()

  def end(self):
    """Kills the process and all processes that its environments started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
      os.killpg(self.process.pid, signal.SIGKILL)
    self.process.kill()

  def _receive_bytes(self, size: int) -> bytes:
    """Receives a part of a message that has begun to arrive."""
    data = bytearray()
    while len(data) < size:
      missing = min(size - len(data), 1 << 20)
      part = self._retry(
          select.POLLIN, functools.partial(self.connection.recv, missing))
      if not part:
        raise EOFError
      data += part
    return bytes(data)

  def _retry(self, event: int, transfer: Callable[[], Any]) -> Any:
    """Sends or receives as soon as the process is ready for it."""
    start = time.monotonic()
    while True:
      try:
        return transfer()
      except BlockingIOError:
        ready = select.poll()
        ready.register(self.connection, event)
        if not ready.poll(1000) and self.process.poll() is not None:
          raise self._death() from None
        if self._timeout and time.monotonic() > start + self._timeout:
          raise self.kill(self._timeout) from None

  def _handle_send_error(self, error: OSError):
    # After other errors, the next `receive` finds the connection closed. A
    # BlockingIOError means that the process has left thousands of bytes unread.
    if isinstance(error, BlockingIOError):
      self._unreachable = self.kill(self._timeout)

  def _kill(self):
    self.end()
    # A process that waits for a driver cannot be killed at once.
    with contextlib.suppress(subprocess.TimeoutExpired):
      self.process.wait(timeout=5)

  @property
  def _name(self) -> str:
    return f"Worker {self.number} (process {self.process.pid})"

  def _stack_traces(self) -> str:
    """Returns the stack traces that the process has written, if any."""
    size = os.fstat(self._stacks.fileno()).st_size
    text = os.pread(self._stacks.fileno(), size, 0).decode(errors="replace")
    return f" It was here:\n{text}" if text else ""

  def _death(self) -> WorkerDied:
    try:
      code = self.process.wait(timeout=5)
    except subprocess.TimeoutExpired:
      return WorkerDied(f"{self._name} closed its connection.", self.number)
    if code < 0:
      reason = f"was killed by {_signal_name(-code)}"
      if -code == signal.SIGKILL:
        reason += ". Was the machine out of memory?"
      elif -code == signal.SIGSEGV:
        reason += ": an environment's native code crashed."
    else:
      reason = f"exited with code {code}; see its messages above."
    return WorkerDied(
        f"{self._name} {reason}{self._stack_traces()}", self.number)


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
  # Not `-m`, which would search the current folder before the packages. Python
  # itself ignores entries of `sys.path` that are not strings.
  path = [entry for entry in sys.path if isinstance(entry, str)]
  code = (f"import sys; sys.path[:] = {path!r}; "
          f"import {module}; {module}.main(*{arguments!r})")
  threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
             "MKL_NUM_THREADS": "1"}
  return subprocess.Popen(
      [sys.executable, "-c", code], env={**threads, **os.environ, **variables},
      **options)


def _signal_name(signum: int) -> str:
  try:
    return signal.Signals(signum).name
  except ValueError:  # Real-time signals have no names.
    return f"signal {signum}"
