"""Workers of a run are killed or hang, and the run does not notice."""

import os
import pathlib
import signal
import sys
import time

import pytest

from tests import command

pytestmark = [
    pytest.mark.slow, pytest.mark.faults, pytest.mark.skipif(
        sys.platform != "linux", reason="Looks into /proc.")]

_RUNS = {
    "hopper": ("--config", "hopper", "--steps", "30000"),
    "paper": (*command.PAPER, "--steps", "1500")}
_FAULTS = signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL


def _workers(process):
  """Return the ids of a trainer's workers."""
  children = [
      child for path in pathlib.Path(
          f"/proc/{process.pid}/task").glob("*/children")
      for child in path.read_text().split()]
  return [int(child) for child in children if "environments.worker" in
          pathlib.Path(f"/proc/{child}/cmdline").read_text()]


def _train(logdir, *args, faults=()):
  """Train with two workers, hurt them in turns, and return folder and text."""
  process = command.start(
      "train.py", *args, "--logdir", logdir, "--set", "num_workers=2", "--set",
      "env_timeout=2", "--set", "eval_every=10000", cwd=logdir)
  left = list(faults)
  try:
    while left and process.poll() is None:
      # Once training has begun.
      if any(path.stat().st_size for path in logdir.glob("*/metrics.jsonl")):
        workers = _workers(process)
        if len(workers) == 2:
          os.kill(workers[len(left) % 2], left.pop(0))
      time.sleep(0.5)
    output, _ = process.communicate(timeout=200)
  finally:
    process.kill()
    process.wait()
  assert process.returncode == 0, output
  return command.run_folder(logdir), output, len(faults) - len(left)


@pytest.mark.parametrize("name", _RUNS)
def test_same_bits_although_workers_die_and_hang(name, tmp_path):
  folders = []
  for faults in ((), _FAULTS):
    logdir = tmp_path / str(len(faults))
    logdir.mkdir()
    folder, output, happened = _train(logdir, *_RUNS[name], faults=faults)
    restarts = [row["restarts"] for row in command.rows(folder)
                if row["phase"] == "train"]
    told = output.count("restart: Worker")
    assert restarts[-1] == told and restarts == sorted(restarts)
    assert told == happened
    assert happened >= 2 if faults else not happened  # A kill and a hang.
    assert len(list(folder.glob("crashes/*/about.txt"))) == told
    folders.append(folder)
  command.assert_same_checkpoints(*folders)
