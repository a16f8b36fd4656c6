"""Connection to a worker: one byte wakes it, longer messages follow a header.

See `protocol` for the bytes; `worker_main` is the other end of the connection.
"""

import contextlib
import functools
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from agents.environments.workers import process, protocol


class WorkerConnection:
  """A worker process, and the socket through which it is woken and answers.

  Args:
    number: Index of this worker in its pool.
    variables: Environment variables in addition to those of this process.
    interrupt_fd: Descriptor that also wakes `poll`; None for none.
    timeout: Limit in seconds for pauses within a message; 0 disables it.
    core: CPU core of the process; None for any core.

  The attribute `since` is the time of the latest request or answer.
  """

  def __init__(
    self,
    number: int,
    variables: dict[str, str],
    interrupt_fd: int | None,
    timeout: float,
    core: int | None = None,
  ) -> None:
    self.number = number
    self._variables = variables
    self._interrupt_fd = interrupt_fd
    self._timeout = timeout
    self._core = core
    self.since = 0.0
    self._start()

  def _start(self) -> None:
    self.socket, remote_end = socket.socketpair()
    self.socket.setblocking(False)
    self.poll = select.poll()
    self.poll.register(self.socket, select.POLLIN)
    if self._interrupt_fd is not None:
      self.poll.register(self._interrupt_fd, select.POLLIN)
    with remote_end:
      remote_end.setblocking(True)  # Despite `socket.setdefaulttimeout`.
      self.process = process.WorkerProcess(
        self.number, remote_end.fileno(), self._variables, self._core
      )

  def replace_process(self) -> None:
    """Ends the process, whatever its state, and starts a new one.

    Raises:
      WorkerDied: If no process can be started.
    """
    self.socket.close()
    self.process.kill()
    self.process.release()
    try:
      self._start()
    except OSError as error:
      raise process.WorkerDied(
        f"Worker {self.number} (process {self.process.pid}) cannot be replaced: {error}",
        self.number,
      ) from None

  def send(self, data: bytes, descriptor: int | None = None) -> None:
    """Sends a message. The next `receive` reports a failure.

    Args:
      data: Index of the block to step, or a request; see `protocol`.
      descriptor: Shared memory of the block, for the request "open".
    """
    self.since = time.monotonic()
    try:
      if descriptor is not None:
        self.socket.send(protocol.DESCRIPTOR)
        socket.send_fds(self.socket, [b"\0"], [descriptor])
      sent = self.socket.send(data)
      while sent < len(data):
        sent += self._retry(select.POLLOUT, self.socket.send, memoryview(data)[sent:])
    except BlockingIOError:  # The process has left thousands of bytes unread.
      self.process.kill_unresponsive(self._timeout)
    except (OSError, process.WorkerDied):
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
      kind = self.socket.recv(1)
      if kind == protocol.ACK:
        return protocol.DONE
      if kind == protocol.RESULT:
        return protocol.receive(functools.partial(self._retry, select.POLLIN, self.socket.recv))
      if kind == protocol.ALIVE:
        return None
    except (OSError, EOFError):
      pass
    raise self.process.death()

  def has_answered(self) -> bool:
    """Returns whether an answer has arrived.

    Reads the signs of life before the answer. Otherwise, they would fill the
    socket, and the process would wait until they are read.
    """
    with contextlib.suppress(OSError):  # No byte has arrived.
      while (kind := self.socket.recv(1, socket.MSG_PEEK)) == protocol.ALIVE:
        self.receive()
      return bool(kind)
    return False

  def check_alive(self, seconds: float) -> None:
    """Checks that a missing answer can still arrive.

    Args:
      seconds: Limit for the time since the latest request or sign of life; 0
        disables it.

    Raises:
      WorkerDied: If the process has ended, or was killed because of the limit.
    """
    if self.process.kill_reason or self.process.poll() is not None:
      raise self.process.death()
    if seconds and time.monotonic() > self.since + seconds:
      raise self.process.kill_unresponsive(seconds)

  def _retry(self, event: int, transfer: Callable[..., Any], *args: Any) -> Any:
    """Sends or receives as soon as the process is ready for it."""
    start = time.monotonic()
    while True:
      try:
        return transfer(*args)
      except BlockingIOError:
        self._wait_for(event, start)

  def _wait_for(self, event: int, start: float) -> None:
    """Waits until the socket may be ready, or raises `WorkerDied`."""
    ready = select.poll()
    ready.register(self.socket, event)
    if not ready.poll(1000) and self.process.poll() is not None:
      raise self.process.death() from None
    if self._timeout and time.monotonic() > start + self._timeout:
      raise self.process.kill_unresponsive(self._timeout) from None
