"""Hides the log messages that TensorFlow prints when it starts.

The import of this module also hides later messages, unless the user has set the
environment variable. TensorFlow still raises its errors. Worker processes
inherit the variable.
"""

import contextlib
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator

from agents.environments.data import import_hook

# Lines of the C++ loggers: severity letter, date, time, process, file. Older
# versions of TensorFlow also begin lines with the date and the time.
_MESSAGE = re.compile(
  rb"WARNING: All log messages before absl::InitializeLog|[IWE]\d{4} |"
  rb"\d{4}-\d\d-\d\d [\d:.]+: [IWE] |INFO: Created TensorFlow Lite"
)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@contextlib.contextmanager
def hidden() -> Iterator[None]:
  """Context that removes lines of TensorFlow's C++ logger from stderr.

  All other lines are printed when the context ends. They are lost if the
  process crashes inside the context.

  Yields:
    None.
  """
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
        if not _MESSAGE.match(line):
          with contextlib.suppress(OSError):  # The reader has ended.
            os.write(2, line)


def hide_at_import() -> None:
  """Hides the messages if a later import, as by an environment, loads it."""
  _hook.install()


def _load(module: types.ModuleType, execute: import_hook.Execute) -> None:
  with hidden():
    execute(module)
    module.config.list_physical_devices()  # Logs whether a GPU exists.


_hook = import_hook.ImportHook("tensorflow", _load)
