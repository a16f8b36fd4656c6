"""How trainer and worker talk: one byte to wake, pickles for the rest.

The byte is the number of a block to step, REQUEST when a pickle follows, or
DESCRIPTOR when a byte with a file descriptor does, for the next request; the
answer is QUIET, or LOUD when a pickle follows. ALIVE says that an answer which
takes long is being worked on.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any
from typing import NamedTuple
from typing import Protocol

import cloudpickle

REQUEST = b"\xff"
DESCRIPTOR = b"\xfe"
BLOCKS = 0xfe  # That can be told apart.
ACK = b"\x00"
RESULT = b"\x01"
ALIVE = b"\x02"
_LENGTH = struct.Struct("!Q")


class Connection(Protocol):
  """What bytes go through, such as a socket."""

  def sendall(self, data: bytes, /):
    """Send all of it."""

  def recv(self, size: int, /) -> bytes:
    """Wait for some bytes, at most so many; none if there will be no more."""


class Answer(NamedTuple):
  """What a worker has to say."""

  result: Any = None
  error: BaseException | None = None
  failure: Exception | None = None  # Says where, with the worker's traceback.
  warnings: tuple[str, ...] = ()  # New ones, of the simulator.


def send(connection: Connection, kind: bytes, message: Any):
  """Send REQUEST or LOUD, and what follows.

  All at once, so that nobody wakes up for a part of it.
  """
  data = message if isinstance(message, bytes) else cloudpickle.dumps(message)
  connection.sendall(kind + _LENGTH.pack(len(data)) + data)


def receive(connection: Connection) -> Any:
  """Receive what follows REQUEST or LOUD.

  Raises:
    EOFError: If the other side is gone.
  """
  size, = _LENGTH.unpack(_receive_bytes(connection, _LENGTH.size))
  return pickle.loads(_receive_bytes(connection, size))


def portable(value: Any) -> Any:
  """Return the value, with text for whatever can't be pickled."""
  if isinstance(value, dict):
    return {key: portable(item) for key, item in value.items()}
  if isinstance(value, list):
    return [portable(item) for item in value]
  if isinstance(value, tuple):
    items = [portable(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
  try:
    pickle.loads(cloudpickle.dumps(value))
    return value
  except Exception:
    return repr(value)


def _receive_bytes(connection: Connection, size: int) -> bytes:
  parts = []
  while size:
    part = connection.recv(min(size, 1 << 20))
    if not part:
      raise EOFError("The other process is gone.")
    parts.append(part)
    size -= len(part)
  return b"".join(parts)
