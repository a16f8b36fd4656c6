"""A training run with methods to list, measure and end its processes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

from agents.training.run_folder import checkpoint
from benchmarks.common import machine, training

_MARK = "AGENTS_SOAK"  # Environment variable of all processes of a run.
_STEPS = 1_000_000_000  # Enough that no run reaches the end.


class SoakedRun:
  """Starts a run with short intervals between checkpoints and evaluations.

  Args:
    config: Name of a config.
    preset: Name of a preset, or None.
    folder: New folder for all files of the run.
  """

  def __init__(self, config: str, preset: str | None, folder: pathlib.Path):
    folder.mkdir()
    self.fault = folder / "fault"  # See `faulty.request`.
    self._folder = folder
    env = training.load_config(config).env
    self._args = [
      "--config",
      config,
      "--steps",
      str(_STEPS),
      *(["--preset", preset] if preset else []),
      *training.split_settings(
        [
          "env.id=benchmarks.common.faulty:Faulty",
          f"env.kwargs={{env_id: {env.id}, path: {self.fault}}}",
          "checkpoint_every=20000",
          "report_every=20000",
          "eval_every=100000",
          "eval_episodes=4",
          "env_timeout=5",
          "max_env_restarts=1000",
        ]
      ),
    ]
    self.started = 0.0  # Value of `time.monotonic` at the trainer's start.
    self.start_new("faulted")

  def start_new(self, name: str):
    """Starts another run of the same config.

    Args:
      name: Name of the new folder for the run.
    """
    self.path: pathlib.Path | None = None  # Run folder; None until it exists.
    self._logdir = self._folder / name
    self._logdir.mkdir()
    self._start(*self._args, "--logdir", str(self._logdir))
    self.wait_until(self.rows)

  def resume(self):
    """Resumes the run after `end`, and waits for its next report."""
    reports = len(self.rows())
    self._start("--resume", str(self.path))
    self.wait_until(lambda: len(self.rows()) > reports)

  def _start(self, *args: str):
    self._mark = f"{_MARK}={uuid.uuid4()}"
    with open(self._folder / "log.txt", "ab") as log:
      self.process = subprocess.Popen(
        [sys.executable, str(machine.REPOSITORY / "train.py"), *args],
        cwd=machine.REPOSITORY,
        env=dict([*os.environ.items(), self._mark.split("=")]),
        stdout=log,
        stderr=log,
      )
    self.started = time.monotonic()

  def wait_until(self, condition: Callable[[], Any], seconds: float = 240.0):
    """Waits for a condition.

    Args:
      condition: Function that returns a true value when the wait is over.
      seconds: Timeout.

    Raises:
      ProcessFailed: If the run ends, or at the timeout.
    """
    deadline = time.monotonic() + seconds
    while not condition():
      if self.process.poll() is not None or time.monotonic() > deadline:
        self.process.kill()
        raise machine.ProcessFailed(f"The run does not continue: {self.log()}")
      time.sleep(0.1)

  def end(self, signum: signal.Signals) -> int:
    """Sends a signal to the trainer and waits until the run has ended.

    Args:
      signum: Signal to send.

    Returns:
      Exit code of the trainer.

    Raises:
      ProcessFailed: If other processes of the run do not end.
    """
    self.process.send_signal(signum)
    code = self.process.wait(timeout=10)
    deadline = time.monotonic() + 10
    while (pids := self.processes()) and time.monotonic() < deadline:
      time.sleep(0.1)
    if pids:
      commands = {pid: _command(pid).decode(errors="replace")[-200:] for pid in pids}
      raise machine.ProcessFailed(f"These processes still run: {commands}")
    return code

  def rows(self) -> list[dict[str, Any]]:
    """Returns the complete rows of `metrics.jsonl`; none before it exists."""
    self.path = self.path or next(self._logdir.iterdir(), None)
    path = self.path and self.path / "metrics.jsonl"
    if not path or not path.exists():
      return []
    complete, _, _ = path.read_text().rpartition("\n")
    return [json.loads(line) for line in complete.splitlines()]

  def checkpoints(self) -> dict[int, pathlib.Path]:
    """Returns the paths of all checkpoints by step."""
    assert self.path
    return {checkpoint.step_of(path): path for path in checkpoint.paths(self.path / "checkpoints")}

  def processes(self) -> list[int]:
    """Returns the ids of all processes of this run."""
    pids = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
      try:
        if self._mark.encode() in path.read_bytes().split(b"\0"):
          pids.append(int(path.parent.name))
      except OSError:  # The process has ended, or belongs to another user.
        pass
    return pids

  def workers(self) -> list[int]:
    """Returns the ids of the processes that step environments."""
    # Each worker leads a session, to which its guard belongs.
    return [
      pid
      for pid in self.processes()
      if b"environments.worker" in _command(pid) and _session(pid) == pid
    ]

  def usage(self) -> dict[str, int]:
    """Returns memory, number of processes, and descriptors of the trainer."""
    descriptors = os.listdir(f"/proc/{self.process.pid}/fd")
    pids = self.processes()
    return {
      "MB": (machine.memory(pids) or 0) // 2**20,
      "descriptors": len(descriptors),
      "processes": len(pids),
    }

  def log(self) -> str:
    """Returns the last 3,000 characters of the output of all processes."""
    return (self._folder / "log.txt").read_text(errors="replace")[-3000:]


def _session(pid: int) -> int | None:
  """Returns the session of a process; None if the process has ended."""
  try:
    return os.getsid(pid)
  except ProcessLookupError:
    return None


def _command(pid: int) -> bytes:
  """Returns the command line of a process; empty if the process has ended."""
  try:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
  except OSError:
    return b""
