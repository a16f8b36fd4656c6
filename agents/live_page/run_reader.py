"""Reads a run folder while the run may write it."""

import io
import json
import math
import os
import pathlib
import socket
import stat
from typing import IO, Any

from agents import config as config_lib
from agents.training.run_folder import report_line, run_lock

_NUM_RECENT = 10  # Training reports that determine the remaining time.


class RunReader:
  """Describes a run as plain data; reads only what was added since.

  Attributes:
    path: Path of the run folder.
    rows: Complete lines of `metrics.jsonl`.
    generation: Number of times that earlier rows were removed. This happens
      when a run resumes from a checkpoint.

  Args:
    path: Path of the run folder.
  """

  def __init__(self, path: pathlib.Path) -> None:
    self.path = path
    self.rows: list[dict[str, Any]] = []
    self.generation = 0
    self._task = ""
    self._steps = 0
    self._config_error = ""
    self._rows_error = ""
    self._versions: dict[str, tuple[int, int] | None] = {}
    self._position = 0  # End of the last complete line.
    self._last_line = b""

  def refresh(self) -> None:
    """Reads the settings and the rows that have changed."""
    if self._has_changed("config.yaml"):
      self._read_config()
    if self._has_changed("metrics.jsonl"):
      self._read_rows()

  def summary(self) -> dict[str, Any]:
    """Returns the state of the run, its progress and its last evaluation.

    Returns:
      JSON-serializable data. "state" is "running", "finished", "stopped", or
      "elsewhere" if another host trains the run or has not released its lock.
    """
    last = self.rows[-1] if self.rows else {"step": 0, "seconds": 0.0}
    state, host = self._state()
    return {
      "name": self.path.name,
      "path": str(self.path),
      "task": self._task,
      "state": state,
      "host": host,
      "step": last["step"],
      "steps": self._steps,
      "seconds": last["seconds"],
      "seconds_left": self._seconds_left() if state == "running" else None,
      "return": self._last_evaluation()["return_mean"],
      "error": " ".join(filter(None, [self._config_error, self._rows_error])),
      "generation": self.generation,
      "num_rows": len(self.rows),
    }

  def _has_changed(self, name: str) -> bool:
    """Returns whether a file differs from its version at the previous call."""
    try:
      status = (self.path / name).stat()
      version = status.st_mtime_ns, status.st_size
    except OSError:
      version = None
    changed = name not in self._versions or version != self._versions[name]
    self._versions[name] = version
    return changed

  def _read_config(self) -> None:
    try:
      with open_file(self.path / "config.yaml") as file:
        config = config_lib.load(file.read().decode(), str(self.path / "config.yaml"))
    except (config_lib.ConfigError, OSError, UnicodeDecodeError) as error:
      self._config_error = str(error)
    else:
      self._task, self._steps, self._config_error = config.env.id, config.steps, ""

  def _read_rows(self) -> None:
    """Reads new rows, or all rows if the last known row was removed."""
    try:
      with open_file(self.path / "metrics.jsonl") as file:
        file.seek(self._position - len(self._last_line))
        data = file.read()
        if data.startswith(self._last_line):
          data = data[len(self._last_line) :]
        else:
          self._forget_rows()
          file.seek(0)
          data = file.read()
    except OSError as error:
      self._forget_rows()
      if not isinstance(error, FileNotFoundError):
        self._rows_error = f"metrics.jsonl can't be read: {error.strerror}."
      return
    for line in io.BytesIO(data):
      if not line.endswith(b"\n"):
        break  # The run is writing this line.
      self._position += len(line)
      self._last_line = line
      try:
        self.rows.append(_parse(line))
      except (ValueError, RecursionError):
        self._rows_error = "metrics.jsonl is damaged; lines that are not reports are left out."

  def _forget_rows(self) -> None:
    self.generation += 1
    self.rows, self._position, self._last_line, self._rows_error = [], 0, b"", ""

  def _state(self) -> tuple[str, str | None]:
    """Returns the state, and the host that locks the run, if any."""
    if run_lock.holder(self.path):
      return "running", socket.gethostname()
    owner = run_lock.owner(self.path)
    if owner and owner.host != socket.gethostname():
      return "elsewhere", str(owner.host)
    return ("finished" if 0 < self._steps <= self._last_evaluation()["step"] else "stopped"), None

  def _last_evaluation(self) -> dict[str, Any]:
    none = {"step": 0, "return_mean": None}
    return next((row for row in reversed(self.rows) if row["phase"] == "eval"), none)

  def _seconds_left(self) -> float | None:
    """Returns the remaining seconds at the recent speed, with evaluations."""
    recent = [row for row in self.rows if row["phase"] == "train"][-_NUM_RECENT:]
    if not recent or recent[0]["step"] >= recent[-1]["step"]:
      return None
    first, last = recent[0], recent[-1]
    speed = (last["step"] - first["step"]) / max(1e-9, last["seconds"] - first["seconds"])
    return max(0, self._steps - last["step"]) / speed


def open_file(path: pathlib.Path) -> IO[bytes]:
  """Opens a file of a run folder, which another person may have written.

  Args:
    path: Path of the file.

  Returns:
    Binary file to read.

  Raises:
    OSError: If the path is a link, a pipe or a folder, or cannot be read.
  """
  # Without O_NONBLOCK, opening a pipe would block.
  file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
  if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
    file.close()
    raise OSError(0, f"{path} is not a file")
  return file


def _parse(line: bytes) -> dict[str, Any]:
  """Returns a row; replaces infinite numbers, which JSON lacks, by None."""
  row = json.loads(line, parse_constant=lambda _: None, parse_float=_finite)
  if not report_line.is_report(row):
    raise ValueError("The line is not a report.")
  return row


def _finite(text: str) -> float | None:
  number = float(text)
  return number if math.isfinite(number) else None
