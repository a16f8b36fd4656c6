"""Context in which commands import TensorFlow."""

import contextlib
import gc
from collections.abc import Iterator

from agents.environments.data import tensorflow_log


@contextlib.contextmanager
def quiet_imports() -> Iterator[None]:
  """Context manager that hides log messages and pauses garbage collection.

  The imports create 450,000 objects, which stay until the process ends. Each
  collection would examine all of them, so later collections ignore them.
  """
  gc.disable()
  try:
    with tensorflow_log.hidden():
      yield
  finally:
    gc.freeze()
    gc.enable()
