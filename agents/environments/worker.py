"""The worker process: steps its blocks whenever the trainer wakes it.

It is started as a fresh interpreter that imports neither TensorFlow nor the
user's `__main__`, and it ends soon after the trainer, however that ended.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
import traceback
from typing import Any

import cloudpickle
import gymnasium

from agents.environments import block as block_lib
from agents.environments import layout
from agents.environments import memory
from agents.environments import messages
from agents.environments import mujoco_log

_SECONDS_TO_CLOSE = 3.0


def main(connection_fd: int, lifeline_fd: int):
  """Serve the trainer until it hangs up.

  Args:
    connection_fd: Socket that carries the messages.
    lifeline_fd: Read end of a pipe whose other end only the trainer holds.
  """
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The trainer decides.
  threading.Thread(target=_follow, args=(lifeline_fd,), daemon=True).start()
  gymnasium.logger.min_level = gymnasium.logger.ERROR  # The trainer has warned.
  warnings: list[str] = []
  mujoco_log.capture(warnings.append)
  connection = socket.socket(fileno=connection_fd)
  blocks: list[block_lib.Block] = []
  try:
    while True:
      command, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
      if not command:
        break
      try:
        if command == messages.REQUEST:
          name, arguments = messages.receive(connection)
          if name == "open":
            blocks.append(_open(descriptors[0], *arguments))
            result = None
          else:
            number, *rest = arguments
            result = getattr(blocks[number], name)(*rest)
          answer: Any = messages.Answer(result)
        else:
          result = blocks[command[0]].step()
          if not result and not warnings:
            connection.send(messages.QUIET)
            continue
          answer = messages.Answer(result)
      except BaseException as error:
        answer = messages.Answer(None, error, _describe(error))
      _reply(connection, answer._replace(warnings=tuple(warnings)))
      warnings.clear()
  except (ConnectionError, EOFError):
    pass  # The trainer is gone, which is the usual end.
  finally:
    for block in blocks:
      block.close()


def _open(descriptor: int, batch: int, first: int, pickled: bytes,
          spaces: tuple, run_seed: int) -> block_lib.Block:
  buffer = memory.attach(descriptor)
  constructors = cloudpickle.loads(pickled)
  here = slice(first, first + len(constructors))
  arrays = {name: array[here] for name, array in
            layout.batch_views(buffer, batch, *spaces).items()}
  return block_lib.Block(constructors, first, spaces, arrays, run_seed)


def _reply(connection: socket.socket, answer: messages.Answer):
  try:
    data = cloudpickle.dumps(answer)
    cloudpickle.loads(data)  # Some errors pickle but can't be built again.
  except Exception:
    error = answer.error and block_lib.EnvironmentFailure(repr(answer.error))
    data = cloudpickle.dumps(answer._replace(
        result=messages.portable(answer.result), error=error))
  connection.sendall(messages.LOUD)
  messages.send(connection, data)


def _describe(error: BaseException) -> str:
  if isinstance(error, block_lib.EnvironmentFailure):
    return str(error)
  if isinstance(error.__cause__, block_lib.EnvironmentFailure):
    return str(error.__cause__)
  return "".join(traceback.format_exception(error))


def _follow(lifeline_fd: int):
  """End this process when the trainer's end of the pipe closes."""
  os.read(lifeline_fd, 1)
  time.sleep(_SECONDS_TO_CLOSE)
  os._exit(1)  # The environment hangs; nothing is left to wait for.
