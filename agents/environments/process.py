"""One worker process, seen from the trainer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from agents import errors
from agents.environments import messages


class WorkerDied(errors.EnvironmentsError):
  """A worker process ended although nobody had asked it to."""


class Worker:
  """One process, its socket, and the pipe whose closing ends it."""

  def __init__(self, number: int, variables: dict[str, str]):
    self.number = number
    self.connection, theirs = socket.socketpair()
    lifeline, self._lifeline = os.pipe()
    # The worker inherits that SIGINT is blocked, so a Ctrl-C while it starts
    # does not end it; here it is only late by that much.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
      self.process = launch(
          "agents.environments.worker", (theirs.fileno(), lifeline), variables,
          stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(), lifeline))
    finally:
      signal.pthread_sigmask(signal.SIG_SETMASK, mask)
      theirs.close()
      os.close(lifeline)

  def send(self, byte: bytes):
    try:
      self.connection.send(byte)
    except OSError:
      raise self._died() from None

  def request(self, number: int, name: str, arguments: tuple,
              descriptor: int | None = None):
    """Ask for a method of block `number`, or to open it."""
    try:
      if descriptor is not None:
        self.connection.send(messages.DESCRIPTOR)
        socket.send_fds(self.connection, [b"\0"], [descriptor])
      self.connection.send(messages.REQUEST)
      messages.send(self.connection, (number, name, arguments))
    except OSError:
      raise self._died() from None

  def receive(self) -> messages.Answer:
    try:
      kind = self.connection.recv(1)
      if kind == messages.QUIET:
        return messages.Answer()
      if kind == messages.LOUD:
        return messages.receive(self.connection)
    except (OSError, EOFError):
      pass
    raise self._died()

  def check_alive(self):
    """Raise WorkerDied if the process has ended and left no answer behind."""
    try:
      if self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
        return
    except OSError:  # There is nothing yet, or never will be.
      pass
    if self.process.poll() is not None:
      raise self._died()

  def hang_up(self):
    """Ask the process to close its environments and end."""
    self.connection.close()

  def let_go(self):
    """Leave what is left of the process to its guard."""
    os.close(self._lifeline)

  def _died(self) -> WorkerDied:
    try:
      code = self.process.wait(timeout=5)
    except subprocess.TimeoutExpired:
      return WorkerDied(f"Worker {self.number} closed its connection.")
    if code < 0:
      reason = f"was killed by {_signal_name(-code)}"
      if -code == signal.SIGKILL:
        reason += ". Was the machine out of memory?"
      elif -code == signal.SIGSEGV:
        reason += ": an environment's native code crashed."
    else:
      reason = f"exited with code {code}; see its messages above."
    return WorkerDied(f"Worker {self.number} (process {self.process.pid}) "
                      f"{reason}")


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
  code = (f"import sys; sys.path[:] = {sys.path!r}; "
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
