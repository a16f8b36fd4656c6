"""The worker process: steps its blocks whenever the trainer wakes it.

It is started as a fresh interpreter that imports neither TensorFlow nor the
user's `__main__`, and it ends soon after the trainer, however that ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable
from typing import Any

import cloudpickle
import gymnasium

from agents.environments.blocks import base
from agents.environments.data import mujoco_warnings
from agents.environments.making import gym_registry
from agents.environments.workers import protocol
from agents.environments.workers import shared_memory

_SECONDS_TO_CLOSE = 3.0
_SECONDS_BETWEEN_SIGNS = 0.1  # Of life.


def main(connection_fd: int, lifeline_fd: int, stacks_fd: int):
  """Serve the trainer until it hangs up.

  Args:
    connection_fd: Socket that carries the messages.
    lifeline_fd: Read end of a pipe whose other end only the trainer holds.
    stacks_fd: File for the stacks of a crash, and for those that it is asked
      for by SIGUSR2.
  """
  faulthandler.enable(stacks_fd)
  faulthandler.register(signal.SIGUSR2, stacks_fd)
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The trainer decides.
  _outlive(signal.SIGTERM)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
  _guard(lifeline_fd)
  gymnasium.logger.min_level = gymnasium.logger.ERROR  # The trainer has warned.
  warnings: list[str] = []
  mujoco_warnings.capture(warnings.append)
  connection = socket.socket(fileno=connection_fd)
  blocks: dict[int, Any] = {}
  descriptors: list[int] = []
  try:
    while command := connection.recv(1):
      try:
        if command == protocol.DESCRIPTOR:
          # Not with every byte: looking for it takes as long as the byte does.
          _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
          continue
        if command == protocol.REQUEST:
          number, name, arguments = protocol.receive(connection)
          result: Any = None
          if name == "open":
            blocks[number] = _open(
                descriptors[0], _alive(connection), *arguments)
          elif name == "close":
            if number in blocks:  # It may not have been built.
              blocks.pop(number).close()
          else:
            result = getattr(blocks[number], name)(*arguments)
          answer = protocol.Answer(result)
        else:
          result = blocks[command[0]].step_wait()
          if result or warnings:  # Mostly numbers and text.
            answer = protocol.Answer(result, warnings=tuple(warnings))
            try:
              data = pickle.dumps(answer)
            except Exception:  # Of an info, where these are asked for.
              _reply(connection, answer)
            else:
              protocol.send(connection, protocol.RESULT, data)
            warnings.clear()
          else:
            connection.send(protocol.ACK)
          continue
      except BaseException as error:
        answer = protocol.Answer(None, error, _failure(error))
      _reply(connection, answer._replace(warnings=tuple(warnings)))
      warnings.clear()
  except (ConnectionError, EOFError):
    pass  # The trainer is gone, which is the usual end.
  finally:
    with contextlib.ExitStack() as stack:
      for block in blocks.values():
        stack.callback(block.close)


def _open(descriptor: int, alive: Callable[[], None], kind: Any, size: int,
          start: int, first: int, ids: dict[str, bytes], pickled: bytes,
          spaces: tuple, options: tuple) -> Any:
  buffer = shared_memory.attach(descriptor)
  gym_registry.add(ids)
  constructors = cloudpickle.loads(pickled)
  here = slice(start, start + len(constructors))
  arrays = {name: array[here] for name, array in
            kind.views(buffer, size, *spaces).items()}
  return kind(constructors, first + start, spaces, arrays, *options, alive)


def _alive(connection: socket.socket) -> Callable[[], None]:
  """Return what tells the trainer that an answer will come, now and then."""
  last = 0.0
  def tell():
    nonlocal last
    if (now := time.monotonic()) > last + _SECONDS_BETWEEN_SIGNS:
      connection.send(protocol.ALIVE)
      last = now
  return tell


def _reply(connection: socket.socket, answer: protocol.Answer):
  try:
    data = cloudpickle.dumps(answer)
    cloudpickle.loads(data)  # Some errors pickle but can't be built again.
  except Exception:
    error = answer.error
    if error is not None:
      error = base.EnvironmentFailure(repr(error))
    data = cloudpickle.dumps(answer._replace(
        result=protocol.portable(answer.result), error=error))
  protocol.send(connection, protocol.RESULT, data)


def _failure(error: BaseException) -> base.EnvironmentFailure:
  for failure in (error, error.__cause__):
    if isinstance(failure, base.EnvironmentFailure):
      return failure
  return base.EnvironmentFailure(
      "".join(traceback.format_exception(error)))


def _outlive(signum: int):
  """Leave it to the trainer to end, where all processes of a run get a signal.

  Unlike SIG_IGN this is not inherited by what environments start.
  """
  signal.signal(signum, lambda *_: None)
  def unblock():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})
  def restore():
    signal.signal(signum, signal.SIG_DFL)
    unblock()
  # One that arrives meanwhile would be forgotten.
  os.register_at_fork(
      before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signum}),
      after_in_parent=unblock, after_in_child=restore)


def _guard(lifeline_fd: int):
  """Start a small process that ends this one soon after the trainer's end.

  A thread could not: native code that hangs may keep the interpreter's lock.
  """
  worker = os.getpid()
  alive, ours = os.pipe()  # Ours stays open for as long as this process runs.
  if os.fork():
    os.close(alive)
    os.close(lifeline_fd)
    return
  os.close(ours)
  signal.signal(signal.SIGTERM, signal.SIG_IGN)
  ready, _, _ = select.select([alive, lifeline_fd], [], [])
  if alive not in ready:
    ready, _, _ = select.select([alive], [], [], _SECONDS_TO_CLOSE)
    if not ready:
      os.killpg(worker, signal.SIGKILL)  # With what environments started.
  os._exit(0)
