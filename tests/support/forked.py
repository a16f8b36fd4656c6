"""Runs commands in processes that start with TensorFlow imported.

The import takes a third of the time of a short run. The fork server of the
standard library imports TensorFlow once, and forks a process for each command.
"""

import atexit
import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
  [
    "agents.commands.train",
    "agents.distributed.cluster_run",
    "agents.training.loop",
    "agents.build",
  ]
)


class Process:
  """Runs a program; has the methods of `subprocess.Popen` that tests use.

  Args:
    program: Path of a script, or name of a module.
    args: Arguments of the program.
    cwd: Current folder of the program.
    variables: Environment variables, added to the variables of this process.
  """

  def __init__(
    self, program: pathlib.Path | str, args: list[str], cwd: pathlib.Path, variables: dict[str, str]
  ):
    reader, writer = _CONTEXT.Pipe(duplex=False)
    self._process = _CONTEXT.Process(
      target=_run, args=(writer, str(program), args, str(cwd), {**os.environ, **variables})
    )
    self._process.start()
    writer.close()
    self.stdout = os.fdopen(os.dup(reader.fileno()), errors="replace")
    reader.close()
    self._output = ""
    self._reader = threading.Thread(target=self._read, daemon=True)

  @property
  def pid(self) -> int:
    """Process id."""
    return self._process.pid

  @property
  def returncode(self) -> int | None:
    """Exit code, negative after a signal, None while the process runs."""
    return self._process.exitcode

  def poll(self) -> int | None:
    """Returns the exit code, None while the process runs."""
    return self.returncode

  def send_signal(self, signum: int):
    """Sends a signal unless the process has ended."""
    if self.returncode is None:
      os.kill(self.pid, signum)

  def kill(self):
    """Sends SIGKILL unless the process has ended."""
    self._process.kill()

  def wait(self, timeout: float | None = None) -> int:
    """Waits for the end of the process, and returns its exit code."""
    self._process.join(timeout)
    if self.returncode is None:
      raise subprocess.TimeoutExpired(self._process.name, timeout)
    return self.returncode

  def communicate(self, timeout: float | None = None) -> tuple[str, None]:
    """Waits for the end of the process, and returns its remaining output."""
    if not self._reader.ident:
      self._reader.start()
    self._reader.join(timeout)
    if self._reader.is_alive():
      raise subprocess.TimeoutExpired(self._process.name, timeout)
    self.wait(timeout)
    return self._output, None

  def _read(self):
    with self.stdout:
      self._output = self.stdout.read()


def _run(output, program: str, args: list[str], cwd: str, variables: dict[str, str]):
  """Runs a program in a forked process as in a new Python process."""
  for descriptor in (1, 2):
    os.dup2(output.fileno(), descriptor)
  output.close()
  os.chdir(cwd)
  os.environ.clear()
  os.environ.update(variables)
  sys.argv = [program, *args]
  paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
  sys.path[:0] = [os.path.dirname(program) or cwd, *filter(None, paths)]
  try:
    if os.path.isabs(program):
      runpy.run_path(program, run_name="__main__")
    else:
      runpy.run_module(program, run_name="__main__", alter_sys=True)
  finally:
    atexit._run_exitfuncs()


def exit_code(function: Callable[..., Any], *args: Any) -> int:
  """Calls a function in a fork of this process; returns the exit code.

  The fork has its own module path, imported modules and import guard.
  """
  if pid := os.fork():
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
  code = 1
  try:
    code = function(*args) or 0
  except SystemExit as error:
    code = error.code
  except BaseException:
    traceback.print_exc()
  finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
