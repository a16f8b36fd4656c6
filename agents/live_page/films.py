"""Films of a run, and a process that films a training episode."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, Any

from agents import config as config_lib

_SECONDS_TO_END = 5.0  # Duration until an interrupted process is killed.


def find(folder: pathlib.Path) -> list[os.DirEntry]:
  """Returns the complete films of a run, the newest one last.

  Args:
    folder: Run folder.
  """
  try:
    # A link could lead out of the run folder.
    entries = [] if (folder / "videos").is_symlink() else [*os.scandir(folder / "videos")]
  except OSError:
    return []
  return sorted(
    (
      entry
      for entry in entries
      # Links could lead to files outside of the run folder.
      if entry.name.endswith(".mp4")
      and not entry.name.endswith(".part.mp4")
      and entry.is_file(follow_symlinks=False)
    ),
    key=lambda entry: (entry.stat(follow_symlinks=False).st_mtime_ns, entry.name),
  )


class FilmProcess:
  """Films the newest recorded training episode of a run, one run at a time.

  Args:
    code: Folders with modules that runs may name; see `import_guard`.
  """

  def __init__(self, code: Sequence[str]) -> None:
    self._options = [word for folder in code for word in ("--code", folder)]
    self._process: subprocess.Popen | None = None
    self._output: IO[bytes] | None = None
    self._run: pathlib.Path | None = None

  def start(self, run: pathlib.Path) -> None:
    """Starts `visualize` with low priority.

    Args:
      run: Run folder.

    Raises:
      ConfigError: If a film is still being rendered.
    """
    if self._process and self._process.poll() is None:
      raise config_lib.ConfigError("Another film is being rendered. Wait until it is complete.")
    if self._output:
      self._output.close()
    self._run, self._output = run, tempfile.TemporaryFile()
    command = "-m", "agents", "visualize", str(run), "--episode", "-1", *self._options
    self._process = subprocess.Popen(
      ["nice", "-n", "19", sys.executable, *command],
      stdin=subprocess.DEVNULL,
      stdout=self._output,
      stderr=subprocess.STDOUT,
      start_new_session=True,
    )

  def state(self, run: pathlib.Path) -> dict[str, Any] | None:
    """Describes the last film of a run.

    Args:
      run: Run folder.

    Returns:
      The key "state" is "rendering", "complete" or "failed". The key "output"
      is the output of a failed process. None if no film of the run was started,
      or if a film of another run was started later.
    """
    if not (self._process and self._output) or run != self._run:
      return None
    code = self._process.poll()
    if not code:
      return {"state": "rendering" if code is None else "complete", "output": ""}
    self._output.seek(0)
    output = self._output.read()[-4000:].decode(errors="replace").strip()
    return {"state": "failed", "output": output or f"exit code {code}"}

  def close(self) -> None:
    """Ends the process, which then removes its unfinished film."""
    if not self._process:
      return
    for signum in (signal.SIGINT, signal.SIGKILL):
      with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(self._process.pid, signum)
      with contextlib.suppress(subprocess.TimeoutExpired):
        self._process.wait(_SECONDS_TO_END)
    if self._output:
      self._output.close()
