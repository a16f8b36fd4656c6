"""A run of training whose processes can be found, counted and ended."""

from __future__ import annotations

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

from agents.commands import settings
from agents.training.run_folder import checkpoint
from benchmarks.common import machine

_ROOT = pathlib.Path(__file__).parent.parent
_MARK = "AGENTS_SOAK"  # Environment variable of all processes of a run.
_STEPS = 1_000_000_000  # More than there is time for.


class Run:
  """A run whose processes can be found and counted.

  Args:
    config: Name of a config.
    preset: Name of a preset, if there is to be one.
    folder: For all that belongs to the run.
  """

  def __init__(self, config: str, preset: str | None, folder: pathlib.Path):
    self.folder = folder
    folder.mkdir()
    self.fault = folder / "fault"
    env = settings.of_new_run(config, None, {}).config.env
    self._args = ["--config", config, "--steps", str(_STEPS)]
    self._args += ["--preset", preset] if preset else []
    for setting in (
        "env.id=benchmarks.envs.faulty:Faulty",
        f"env.kwargs={{env_id: {env.id}, path: {self.fault}}}",
        "checkpoint_every=20000", "report_every=20000", "eval_every=100000",
        "eval_episodes=4", "env_timeout=5", "max_env_restarts=1000"):
      self._args += ["--set", setting]
    self.started = 0.0
    self.begin("faulted")

  def begin(self, name: str):
    """Begin a new run, of the same config."""
    self.path: pathlib.Path | None = None
    self._logdir = self.folder / name
    self._logdir.mkdir()
    self.start(*self._args, "--logdir", str(self._logdir))
    self.wait_for(self.metrics)

  def resume(self):
    rows = len(self.rows())
    self.start("--resume", str(self.path))
    self.wait_for(lambda: len(self.rows()) > rows)

  def start(self, *args: str):
    self._mark = f"{_MARK}={uuid.uuid4()}"
    with open(self.folder / "log.txt", "ab") as log:
      self.process = subprocess.Popen(
          [sys.executable, str(_ROOT / "train.py"), *args], cwd=_ROOT,
          env=dict([*os.environ.items(), self._mark.split("=")]),
          stdout=log, stderr=log)
    self.started = time.monotonic()

  def wait_for(self, happened: Callable[[], Any], seconds: float = 240.0):
    deadline = time.monotonic() + seconds
    while not happened():
      if self.process.poll() is not None or time.monotonic() > deadline:
        self.process.kill()
        raise machine.Failed(f"The run does not go on: {self.tail()}")
      time.sleep(0.1)

  def end(self, signum: signal.Signals) -> int:
    """Send a signal and return the exit code; nothing may be left."""
    self.process.send_signal(signum)
    code = self.process.wait(timeout=10)
    deadline = time.monotonic() + 10
    while (left := self.processes()) and time.monotonic() < deadline:
      time.sleep(0.1)
    if left:
      raise machine.Failed(f"These processes are left: {left}")
    return code

  def metrics(self) -> bytes:
    """Return what was reported, as bytes; finds the folder first."""
    if self.path is None:
      self.path = next(self._logdir.iterdir(), None)
    path = self.path and self.path / "metrics.jsonl"
    return path.read_bytes() if path and path.exists() else b""

  def rows(self) -> list[dict[str, Any]]:
    return [json.loads(line) for line in self.metrics().splitlines(True)
            if line.endswith(b"\n")]

  def saved(self) -> list[int]:
    """Steps of all checkpoints."""
    assert self.path
    return [*map(checkpoint.step_of, checkpoint.paths(
        self.path / "checkpoints"))]

  def processes(self) -> list[int]:
    """Ids of everything this run has started."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
      try:
        if self._mark.encode() in path.read_bytes().split(b"\0"):
          found.append(int(path.parent.name))
      except OSError:
        pass
    return found

  def workers(self) -> list[int]:
    """Ids of the processes that step environments."""
    children = pathlib.Path(
        f"/proc/{self.process.pid}/task").glob("*/children")
    pids = [int(pid) for path in children for pid in path.read_text().split()]
    return [pid for pid in pids if b"environments.worker" in self._command(pid)]

  def _command(self, pid: int) -> bytes:
    try:
      return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # It has ended meanwhile.
      return b""

  def usage(self) -> dict[str, int]:
    """What the trainer and its processes have of what there is."""
    descriptors = os.listdir(f"/proc/{self.process.pid}/fd")
    pids = self.processes()
    return {"MB": (machine.memory(pids) or 0) // 2**20,
            "descriptors": len(descriptors), "processes": len(pids)}

  def tail(self) -> str:
    return (self.folder / "log.txt").read_text(errors="replace")[-3000:]
