"""The worker process: steps its blocks whenever the trainer wakes it.

The process starts as a fresh interpreter that imports neither TensorFlow nor
the user's `__main__`. It ends soon after the trainer, even after a crash.
"""

import contextlib
import faulthandler
import os
import pathlib
import pickle
import signal
import socket
import time
import traceback
from typing import Any

import cloudpickle
import gymnasium

from agents.environments.blocks import base
from agents.environments.data import lost_output, mujoco_warnings
from agents.environments.making import copied_registrations
from agents.environments.workers import guard, protocol, shared_memory

_SECONDS_TO_CLOSE = 3.0
_SECONDS_BETWEEN_HEARTBEATS = 0.1


def main(connection_fd: int, lifeline_fd: int, stacks_fd: int) -> None:
  """Serves the trainer until it closes the connection.

  Args:
    connection_fd: Socket that carries the messages.
    lifeline_fd: Read end of a pipe; only the trainer holds the write end.
    stacks_fd: File for the stack traces of a crash and of SIGUSR2.
  """
  faulthandler.enable(stacks_fd)
  faulthandler.register(signal.SIGUSR2, stacks_fd)
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The trainer handles Ctrl-C.
  for signum in (signal.SIGTERM, signal.SIGHUP):
    _ignore_until_fork(signum)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
  guard.start(lifeline_fd, _SECONDS_TO_CLOSE)
  with contextlib.suppress(OSError):  # Exists only on Linux.
    # If memory runs out, the kernel kills a worker, which can be replaced.
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
  gymnasium.logger.min_level = gymnasium.logger.ERROR  # The trainer has warned.
  with lost_output.discarded():
    _serve(socket.socket(fileno=connection_fd))


def _serve(connection: socket.socket) -> None:
  """Answers every byte of the trainer; see `protocol`."""
  warnings: list[str] = []
  mujoco_warnings.capture(warnings.append)
  last_beat = 0.0

  def beat() -> None:
    nonlocal last_beat
    if (now := time.monotonic()) > last_beat + _SECONDS_BETWEEN_HEARTBEATS:
      connection.send(protocol.ALIVE)
      last_beat = now

  base.BlockBase.heartbeat = staticmethod(beat)
  blocks: dict[int, Any] = {}
  descriptors: list[int] = []
  try:
    while command := connection.recv(1):
      if command == protocol.DESCRIPTOR:
        # Reading every byte with `recv_fds` would take twice as long.
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        continue
      last_beat = time.monotonic()  # Short requests need no sign of life.
      stepping = command != protocol.REQUEST
      try:
        if stepping:
          result = blocks[command[0]].step()
          if not (result or warnings):
            connection.send(protocol.ACK)
            continue
        else:
          result = _handle(protocol.receive(connection.recv), blocks, descriptors)
        answer = _pickled(protocol.Answer(result, warnings=tuple(warnings)), stepping)
      except BaseException as error:
        answer = _pickled(protocol.Answer(None, error, _failure(error), tuple(warnings)))
      connection.sendall(protocol.encode(protocol.RESULT, answer))
      warnings.clear()
  except (ConnectionError, EOFError):
    pass  # The trainer has ended, which is the usual end of a worker.
  finally:
    with contextlib.ExitStack() as stack:
      for block in blocks.values():
        stack.callback(block.close)


def _handle(request: tuple[int, str, tuple], blocks: dict[int, Any], descriptors: list[int]) -> Any:
  """Opens or closes a block, or calls one of its methods."""
  number, name, arguments = request
  if name == "open":
    blocks[number] = _open(descriptors[0], *arguments)
  elif name == "close":
    if number in blocks:  # Its constructor may have failed.
      blocks.pop(number).close()
  else:
    return getattr(blocks[number], name)(*arguments)
  return None


def _open(
  descriptor: int,
  block_class: Any,
  size: int,
  rows: slice,
  first: int,
  registrations: dict[str, bytes],
  pickled: bytes,
  spaces: tuple,
  options: tuple,
) -> Any:
  buffer = shared_memory.attach(descriptor)
  copied_registrations.add(registrations)
  constructors = cloudpickle.loads(pickled)
  views = block_class.layout(size, *spaces).views(buffer)
  arrays = {name: array[rows] for name, array in views.items()}
  return block_class(constructors, first + rows.start, spaces, arrays, *options)


def _pickled(answer: protocol.Answer, plain: bool = False) -> bytes:
  """Pickles an answer; replaces parts that the trainer could not unpickle.

  Args:
    answer: The answer.
    plain: Whether it probably holds only numbers and text.

  Returns:
    The pickle.
  """
  if plain:
    with contextlib.suppress(Exception):  # An info holds another object.
      return pickle.dumps(answer)
  try:
    data = cloudpickle.dumps(answer)
    cloudpickle.loads(data)  # Some errors can be pickled but not unpickled.
    return data
  except Exception:
    return cloudpickle.dumps(
      answer._replace(
        result=protocol.picklable(answer.result),
        error=answer.failure or answer.error and base.EnvironmentFailure(repr(answer.error)),
        failure=None,
      )
    )


def _failure(error: BaseException) -> base.EnvironmentFailure | None:
  """Returns an error that names the place; None if `error` names it itself."""
  if isinstance(error, base.EnvironmentFailure):
    return None
  if isinstance(error.__cause__, base.EnvironmentFailure):
    return error.__cause__
  return base.EnvironmentFailure("".join(traceback.format_exception(error)))


def _ignore_until_fork(signum: int) -> None:
  """Ignores a signal here, but not in processes that environments start.

  The trainer decides when workers end, because a terminal or a cluster sends
  signals to all processes of a run. Child processes would inherit SIG_IGN.
  """
  signal.signal(signum, lambda *_: None)

  def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})

  def restore() -> None:
    signal.signal(signum, signal.SIG_DFL)
    unblock()

  # Blocks the signal during a fork, because it could be lost otherwise.
  os.register_at_fork(
    before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signum}),
    after_in_parent=unblock,
    after_in_child=restore,
  )
