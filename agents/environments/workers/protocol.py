"""Messages between trainer and worker: one byte to step, pickles for the rest.

The trainer sends one byte: the number of a block to step, REQUEST before a
pickle, or DESCRIPTOR before another byte that carries a file descriptor for the
next request. A worker answers with ACK, or with RESULT and a pickled `Answer`.
During long requests, it regularly sends ALIVE.
"""

import pickle
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import cloudpickle

REQUEST = b"\xff"
DESCRIPTOR = b"\xfe"
MAX_BLOCKS = 0xFE  # Number of blocks that one byte can address.
ACK = b"\x00"
RESULT = b"\x01"
ALIVE = b"\x02"
HEADER = struct.Struct("!Q")  # Length in bytes of the pickle that follows.


class Answer(NamedTuple):
  """Answer of a worker to a request or a step."""

  result: Any = None
  error: BaseException | None = None
  # Contains place and traceback of the error; None if the error does.
  failure: Exception | None = None
  warnings: tuple[str, ...] = ()  # New warnings of the simulator.

  def unwrap(self) -> Any:
    """Returns the result.

    Raises:
      BaseException: The error, with the failure as its cause.
    """
    if self.error is not None:
      raise self.error from self.failure
    return self.result


DONE = Answer()  # The answer that ACK encodes.


def encode(kind: bytes, message: Any) -> bytes:
  """Encodes REQUEST or RESULT together with its pickle.

  The result is one buffer, so that the other process wakes up only once.

  Args:
    kind: REQUEST or RESULT.
    message: Picklable object, or bytes of a finished pickle.

  Returns:
    Bytes to send.
  """
  data = message if isinstance(message, bytes) else cloudpickle.dumps(message)
  return kind + HEADER.pack(len(data)) + data


def receive(receive_bytes: Callable[[int], bytes]) -> Any:
  """Receives the pickle after REQUEST or RESULT.

  Args:
    receive_bytes: Waits for bytes and returns at most as many as given, like
      `recv` of a blocking socket.

  Returns:
    The unpickled message.

  Raises:
    EOFError: If the other process has closed the connection.
  """

  def read(size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
      part = receive_bytes(min(size - len(data), 1 << 20))
      if not part:
        raise EOFError("The other process has closed the connection.")
      data += part
    return data

  (size,) = HEADER.unpack(read(HEADER.size))
  return pickle.loads(read(size))


def picklable(value: Any) -> Any:
  """Replaces every part that cannot be pickled by its `repr`.

  Args:
    value: Any object; dicts, lists and tuples are searched.

  Returns:
    A value of the same structure.
  """
  if isinstance(value, dict):
    return {key: picklable(item) for key, item in value.items()}
  if isinstance(value, list):
    return [picklable(item) for item in value]
  if isinstance(value, tuple):
    items = [picklable(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
  try:
    pickle.loads(cloudpickle.dumps(value))
    return value
  except Exception:
    return repr(value)
