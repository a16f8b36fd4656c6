"""Workers of a run are killed or hang, and the run does not notice."""

import json
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
    "cheetah": ("--config", "cheetah", "--steps", "40000"),
    "hopper": ("--config", "hopper", "--steps", "40000"),
    "cartpole": ("--config", "cartpole", "--steps", "20000"),
    "paper": (*command.PAPER, "--steps", "1500")}
_FAULTS = {"kill": signal.SIGKILL, "hang": signal.SIGSTOP}


def _workers(process):
  """Return the ids of a trainer's workers."""
  children = [
      child for path in pathlib.Path(
          f"/proc/{process.pid}/task").glob("*/children")
      for child in path.read_text().split()]
  return [int(child) for child in children if "environments.worker" in
          pathlib.Path(f"/proc/{child}/cmdline").read_text()]


def _train(logdir, *args, fault=None):
  """Train with two workers, hurt them three times, and return folder and text.
  """
  process = command.start(
      "train.py", *args, "--logdir", logdir, "--set", "num_workers=2", "--set",
      "env_timeout=2", "--set", "eval_every=10000", cwd=logdir)
  hurt = 0
  try:
    while fault and hurt < 3 and process.poll() is None:
      # Once training has begun.
      if any(path.stat().st_size for path in logdir.glob("*/metrics.jsonl")):
        time.sleep(0.37)
        workers = _workers(process)
        if len(workers) == 2:
          os.kill(workers[hurt % 2], _FAULTS[fault])
          hurt += 1
      time.sleep(0.2)
    output, _ = process.communicate(timeout=200)
  finally:
    process.kill()
  assert process.returncode == 0, output
  return command.run_folder(logdir), output


@pytest.mark.parametrize("name", _RUNS)
def test_same_bits_although_workers_die_or_hang(name, tmp_path):
  folders = {}
  for fault in (None, *_FAULTS):
    logdir = tmp_path / str(fault)
    logdir.mkdir()
    folders[fault], output = _train(logdir, *_RUNS[name], fault=fault)
    rows = [json.loads(line) for line in (
        folders[fault] / "metrics.jsonl").read_text().splitlines()]
    restarts = [row["restarts"] for row in rows if row["phase"] == "train"]
    told = output.count("restart: Worker")
    assert restarts[-1] == told and restarts == sorted(restarts)
    assert told == 0 if fault is None else 1 <= told <= 3
  for fault in _FAULTS:
    command.assert_same_checkpoints(folders[fault], folders[None])
