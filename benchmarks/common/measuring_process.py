"""Child processes that repeat a measurement on request."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks.common import machine


class MeasuringProcess:
  """Python process that calls `serve`, and waits between requests.

  Args:
    args: Arguments of the interpreter, such as "-m" and a module.
    folder: Working folder, from which the process imports its modules; None
      keeps the folder and the modules of this process.
  """

  def __init__(self, *args: str, folder: pathlib.Path | None = None):
    self._args = args
    self._errors = tempfile.TemporaryFile()
    variables = {"PYTHONPATH": str(folder)} if folder else {}
    self._process = subprocess.Popen(
      [sys.executable, *args],
      cwd=folder,
      text=True,
      env={**os.environ, **variables},
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=self._errors,
    )

  def request(self):
    """Starts a measurement."""
    assert self._process.stdin
    with contextlib.suppress(BrokenPipeError):  # `receive` reports the cause.
      print(file=self._process.stdin, flush=True)

  def receive(self) -> Any:
    """Returns the result of the requested measurement.

    Raises:
      ProcessFailed: If the process ended.
    """
    assert self._process.stdout
    line = self._process.stdout.readline()
    if line:
      return json.loads(line)
    self._errors.seek(0)
    text = self._errors.read()[-4000:].decode(errors="replace")
    raise machine.ProcessFailed(f"python {' '.join(self._args)} ended:\n{text}")

  def close(self):
    """Ends the process and waits for it."""
    self._process.communicate()
    self._errors.close()


def serve(measure: Callable[[], Any]):
  """Prints a measurement as JSON for each line of the standard input.

  Other output goes to the standard error, so that no library can disturb the
  results.

  Args:
    measure: Function whose result can be stored as JSON.
  """
  results = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)
  for _ in sys.stdin:
    print(json.dumps(measure()), file=results, flush=True)
