"""Discards output if it can't be written, instead of raising an error.

For example, `tee` ends with Ctrl-C before a run ends, and a terminal is closed.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


@contextlib.contextmanager
def discarded() -> Iterator[None]:
  """Context in which stdout and stderr discard output after an error.

  Yields:
    None.
  """
  before = sys.stdout, sys.stderr
  streams: Any = [stream and _Output(stream) for stream in before]
  sys.stdout, sys.stderr = streams
  try:
    yield
  finally:
    for stream in filter(None, streams):
      stream.flush()
    sys.stdout, sys.stderr = before


class _Output:
  """A text stream that discards all output after an error.

  Args:
    stream: Stream that receives the text.
  """

  def __init__(self, stream: TextIO) -> None:
    self._stream = stream

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)

  def write(self, text: str) -> int:
    """Writes a text; returns its length."""
    with self._without_errors():
      self._stream.write(text)
    return len(text)

  def flush(self) -> None:
    """Writes the buffered text."""
    with self._without_errors():
      self._stream.flush()

  @contextlib.contextmanager
  def _without_errors(self) -> Iterator[None]:
    try:
      yield
    except BlockingIOError:  # The reader is slow.
      pass
    except OSError:
      # The null device also receives the output of native code and of later
      # processes, and the text that the stream has buffered.
      with contextlib.suppress(OSError), open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), self._stream.fileno())
