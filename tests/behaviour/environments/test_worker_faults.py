"""Killed and hanging workers do not change the results of a run."""

import os
import pathlib
import signal
import sys
import time

import pytest

from tests.support import command

pytestmark = [
  pytest.mark.slow,
  pytest.mark.faults,
  pytest.mark.skipif(sys.platform != "linux", reason="The test reads /proc."),
]

_RUN = "--config", "hopper", "--steps", "12000"
_FAULTS = signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL


def _workers(process):
  """Returns the process ids of a trainer's workers."""
  children = [
    child
    for path in pathlib.Path(f"/proc/{process.pid}/task").glob("*/children")
    for child in path.read_text().split()
  ]
  return [
    int(child)
    for child in children
    if "environments.worker" in pathlib.Path(f"/proc/{child}/cmdline").read_text()
  ]


def _train(logdir, *args, faults=()):
  """Trains with two workers and sends signals to the workers.

  Args:
    logdir: Parent folder of the run folder.
    args: Further arguments of `train.py`.
    faults: Signals to send, in this order.

  Returns:
    Run folder, output and number of sent signals.
  """
  process = command.start(
    "train.py",
    *args,
    "--logdir",
    logdir,
    "--set",
    "num_workers=2",
    "--set",
    "env_timeout=2",
    "--set",
    "eval_every=6000",
    cwd=logdir,
  )
  remaining = list(faults)
  try:
    while remaining and process.poll() is None:
      # A row of metrics shows that training has begun.
      if any(path.stat().st_size for path in logdir.glob("*/metrics.jsonl")):
        workers = _workers(process)
        if len(workers) == 2:
          os.kill(workers[len(remaining) % 2], remaining.pop(0))
      time.sleep(0.05)
    output, _ = process.communicate(timeout=200)
  finally:
    process.kill()
    process.wait()
  assert process.returncode == 0, output
  return command.run_folder(logdir), output, len(faults) - len(remaining)


def test_killed_and_hanging_workers_do_not_change_a_run(tmp_path, deadline):
  deadline(900)
  folders = []
  for faults in ((), _FAULTS):
    logdir = tmp_path / str(len(faults))
    logdir.mkdir()
    folder, output, num_faults = _train(logdir, *_RUN, faults=faults)
    restarts = [row["restarts"] for row in command.rows(folder) if row["phase"] == "train"]
    num_printed = output.count("restart: Worker")
    assert restarts[-1] == num_printed and restarts == sorted(restarts)
    assert num_printed == num_faults
    # The run may end before the third signal. The first two signals kill one
    # worker and stop the other one.
    assert num_faults >= 2 if faults else not num_faults
    assert len(list(folder.glob("crashes/*/about.txt"))) == num_printed
    folders.append(folder)
  command.assert_same_checkpoints(*folders)
