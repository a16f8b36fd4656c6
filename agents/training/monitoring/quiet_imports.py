"""Suppresses the log messages that TensorFlow prints when it is imported."""

import contextlib
import os
import re
import sys
import tempfile

# Lines of the C++ logger: severity letter, date, time, process, file.
_LOG_MESSAGE = re.compile(
    rb"(WARNING: All log messages before absl::InitializeLog|[IWE]\d{4} ).*")


@contextlib.contextmanager
def quiet_imports():
  """Context that removes lines of TensorFlow's C++ logger from stderr.

  All other lines are printed when the context ends. They are lost if the
  process crashes inside the context.

  Yields:
    None.
  """
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  sys.stderr.flush()
  original = os.dup(2)
  with tempfile.TemporaryFile() as file:
    os.dup2(file.fileno(), 2)
    try:
      yield
    finally:
      sys.stderr.flush()
      os.dup2(original, 2)
      os.close(original)
      file.seek(0)
      for line in file:
        if not _LOG_MESSAGE.match(line):
          os.write(2, line)
