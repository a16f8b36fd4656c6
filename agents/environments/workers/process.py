"""One worker process, seen from the trainer."""

from __future__ import annotations

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
from agents.environments.workers import affinity
from agents.environments.workers import protocol

SECONDS_TO_CLOSE = 3.0  # For the environments of a worker.
_SECONDS_TO_DUMP = 1.0


class WorkerDied(errors.EnvironmentsError):
  """A worker process ended, or had to be killed, before it was asked to."""

  def __init__(self, message: str, number: int):
    super().__init__(message)
    self.number = number  # Of the worker.


class Worker:
  """One process, its socket, and the pipe whose closing ends it.

  Args:
    number: Of this worker among all.
    variables: Environment variables beside those of this process.
    interrupt_fd: A descriptor that ends waiting, for `poll`; None for none.
    seconds: That the process may pause within a message; 0: forever.
    core: That it stays on; None for any.
  """

  def __init__(self, number: int, variables: dict[str, str],
               interrupt_fd: int | None, seconds: float,
               core: int | None = None):
    self.number = number
    self._variables = variables
    self._interrupt_fd = interrupt_fd
    self._seconds = seconds
    self._core = core
    self.since = 0.0  # When it was asked, or has answered, the last time.
    self._start()

  def _start(self):
    self.connection, theirs = socket.socketpair()
    self.connection.setblocking(False)
    self._unreachable: WorkerDied | None = None  # Since something was sent.
    self.poll = select.poll()
    self.poll.register(self.connection, select.POLLIN)
    if self._interrupt_fd is not None:
      self.poll.register(self._interrupt_fd, select.POLLIN)
    self._stacks = tempfile.TemporaryFile()  # Of a hang or a crash.
    lifeline, self._lifeline = os.pipe()
    # The worker inherits that SIGINT is blocked, so a Ctrl-C while it starts
    # does not end it; here it is only late by that much.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
      theirs.setblocking(True)  # Whatever `socket.setdefaulttimeout` says.
      descriptors = theirs.fileno(), lifeline, self._stacks.fileno()
      self.process = launch(
          "agents.environments.workers.worker_main", descriptors, self._variables,
          stdin=subprocess.DEVNULL, pass_fds=descriptors,
          start_new_session=True)
      affinity.place(self.process.pid, self._core)
    finally:
      signal.pthread_sigmask(signal.SIG_SETMASK, mask)
      theirs.close()
      os.close(lifeline)

  def replace(self):
    """Begin anew with another process, whatever became of this one.

    Raises:
      WorkerDied: If there can't be another.
    """
    self.disconnect()
    self._kill()
    self.release()
    try:
      self._start()
    except OSError as error:
      raise WorkerDied(f"{self._name} can't be replaced: {error}",
                       self.number) from None

  def send(self, byte: bytes):
    """Send a byte; who waits for the answer finds out if nobody took it."""
    self.since = time.monotonic()
    try:
      self.connection.send(byte)
    except OSError as error:
      self._not_sent(error)

  def request(self, message: tuple[int, str, tuple] | bytes,
              descriptor: int | None = None):
    """Ask for a method of a block, or to open it, as `send` does.

    Args:
      message: Number of the block, name and arguments, pickled or not.
      descriptor: Of its shared memory, to open it.
    """
    self.since = time.monotonic()
    try:
      if descriptor is not None:
        self.connection.send(protocol.DESCRIPTOR)
        socket.send_fds(self.connection, [b"\0"], [descriptor])
      protocol.send(self, protocol.REQUEST, message)
    except WorkerDied as death:
      self._unreachable = death
    except OSError as error:
      self._not_sent(error)

  def _not_sent(self, error: OSError):
    # Where it is dead, the end of its answers tells.
    if isinstance(error, BlockingIOError):  # Thousands of bytes are unread.
      self._unreachable = self.kill(self._seconds)

  def receive(self) -> protocol.Answer | None:
    """Return what the process has sent: an answer, or that it is alive.

    Raises:
      WorkerDied: If it has ended, stopped halfway, or could not be asked.
    """
    if self._unreachable:
      raise self._unreachable
    self.since = time.monotonic()
    try:
      kind = self.connection.recv(1)
      if kind == protocol.ACK:
        return protocol.Answer()
      if kind == protocol.RESULT:
        return protocol.receive(self)
      if kind == protocol.ALIVE:
        return None
    except (OSError, EOFError):
      pass
    raise self._died()

  def recv(self, size: int) -> bytes:
    """Receive a part of a message that has begun to arrive."""
    return self._patiently(
        select.POLLIN, functools.partial(self.connection.recv, size))

  def sendall(self, data: bytes):
    """Send a message of any size."""
    rest = memoryview(data)
    while rest:
      rest = rest[self._patiently(
          select.POLLOUT, functools.partial(self.connection.send, rest)):]

  def _patiently(self, event: int, transfer: Callable[[], Any]) -> Any:
    """Send or receive what can be, as soon as the process is ready for it."""
    start = time.monotonic()
    while True:
      try:
        return transfer()
      except BlockingIOError:
        ready = select.poll()
        ready.register(self.connection, event)
        if not ready.poll(1000) and self.process.poll() is not None:
          raise self._died() from None
        if self._seconds and time.monotonic() > start + self._seconds:
          raise self.kill(self._seconds) from None

  def check_alive(self):
    """Raise WorkerDied if there will be no answer, and none has arrived."""
    if self._unreachable:
      raise self._unreachable
    try:
      if self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
        return
    except OSError:  # There is nothing yet, or never will be.
      pass
    if self.process.poll() is not None:
      raise self._died()

  def kill(self, seconds: float) -> WorkerDied:
    """Kill a worker that does not answer for so long, once it says where it is.

    Returns:
      An error to raise.
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
        f"and was killed.{self._where()}", self.number)

  def disconnect(self):
    """Ask the process to close its environments and end."""
    self.connection.close()

  def release(self):
    """Leave what is left of the process to its guard."""
    if self._lifeline >= 0:
      os.close(self._lifeline)
    self._lifeline = -1
    self._stacks.close()

  def end(self):
    """Kill the process, and what its environments have started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
      os.killpg(self.process.pid, signal.SIGKILL)
    self.process.kill()

  def _kill(self):
    self.end()
    with contextlib.suppress(subprocess.TimeoutExpired):  # In a driver's hands.
      self.process.wait(timeout=5)

  @property
  def _name(self) -> str:
    return f"Worker {self.number} (process {self.process.pid})"

  def _where(self) -> str:
    """Return what the process wrote of its stacks, if it did."""
    size = os.fstat(self._stacks.fileno()).st_size
    text = os.pread(self._stacks.fileno(), size, 0).decode(errors="replace")
    return f" It was here:\n{text}" if text else ""

  def _died(self) -> WorkerDied:
    try:
      code = self.process.wait(timeout=5)
    except subprocess.TimeoutExpired:
      return WorkerDied(
          f"{self._name} closed its connection.", self.number)
    if code < 0:
      reason = f"was killed by {_signal_name(-code)}"
      if -code == signal.SIGKILL:
        reason += ". Was the machine out of memory?"
      elif -code == signal.SIGSEGV:
        reason += ": an environment's native code crashed."
    else:
      reason = f"exited with code {code}; see its messages above."
    return WorkerDied(
        f"{self._name} {reason}{self._where()}", self.number)


def launch(module: str, arguments: tuple[int, ...], variables: dict[str, str],
           **options) -> subprocess.Popen:
  """Start a fresh interpreter that calls `main` of a module.

  Args:
    module: Its name.
    arguments: Of its `main`.
    variables: Environment variables beside those of this process.
    options: Of `subprocess.Popen`.
  """
  # Not `-m`: that would put the current folder, with whatever modules it
  # holds, before the packages. (`sys` is built in.)
  # Python itself ignores what is no text in its path.
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
