"""The trainer's own faults: signals in long updates, full disks."""

import os
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

from agents.training.run_folder import checkpoint
from tests import command
from tests.behaviour import conftest

pytestmark = [
    pytest.mark.slow, pytest.mark.faults, pytest.mark.skipif(
        sys.platform != "linux", reason="Mounts file systems.")]

# An update that never ends, each part of which is told.
_LONG = """
import sys
from agents.algorithms import ppo
from agents.commands import train
learn = ppo.BatchPPO.learn_in_parts
def learn_and_tell(*args):
  for part in learn(*args):
    print("part", flush=True)
    yield part
ppo.BatchPPO.learn_in_parts = learn_and_tell
sys.exit(train.main([
    "--config", "pendulum", "--preset", "paper", "--logdir", sys.argv[1],
    "--set", "num_envs=4", "--set", "algorithm.update_every=8",
    "--set", "env.max_length=50", "--set", "algorithm.update_epochs=100000",
    "--set", "eval_episodes=1"]))
"""


def test_a_signal_ends_a_long_update(tmp_path):
  process = subprocess.Popen(
      [sys.executable, "-c", _LONG, str(tmp_path)], cwd=command.ROOT,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
  try:
    parts = 0
    for line in process.stdout:
      parts += line == "part\n"
      if parts == 5:
        break
    folder = command.run_folder(tmp_path)
    before, _ = checkpoint.load(checkpoint.newest(folder / "checkpoints"))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=10)  # A promise.
  finally:
    process.kill()
  assert process.returncode == 128 + signal.SIGTERM
  assert "Stopped after 0 steps. To resume: " in output
  after, _ = checkpoint.load(checkpoint.newest(folder / "checkpoints"))
  assert after.keys() == before.keys()
  for name, array in before.items():
    np.testing.assert_array_equal(after[name], array, err_msg=name)


def test_divergence_has_an_exit_code_of_its_own(tmp_path):
  done = command.run(
      "train.py", *command.SMALL, "--steps", "2000", "--logdir", tmp_path,
      "--set", "algorithm.learning_rate=1e30", "--set",
      "algorithm.max_grad_norm=1e30", cwd=tmp_path)
  assert done.returncode == 3, done.stdout
  assert done.stdout.count("Going on from the checkpoint of step 0") == 3
  assert "Not finite are policy/" in done.stdout
  assert "Traceback" not in done.stdout
  folder = command.run_folder(tmp_path)
  arrays, _ = checkpoint.load(checkpoint.newest(folder / "checkpoints"))
  assert all(np.isfinite(array).all() for name, array in arrays.items()
             if name.startswith("variable/"))


_ON_SMALL_DISK = """
mount -t tmpfs -o size=600k none {disk} || exit 99
{train} {args} --logdir {disk} > {out}/full 2>&1
echo $? > {out}/code
ls {disk}/*/checkpoints > {out}/files
mount -o remount,size=100m {disk}
{train} --resume {disk} > {out}/resumed 2>&1
cp -r {disk}/* {out}/run
"""


def test_a_full_disk_costs_nothing_that_was_saved(reference, tmp_path):
  disk = tmp_path / "disk"
  disk.mkdir()
  train = shlex.join([sys.executable, str(command.ROOT / "train.py")])
  script = _ON_SMALL_DISK.format(
      disk=disk, out=tmp_path, train=train,
      args=shlex.join(conftest.RUN))
  done = subprocess.run(
      ["unshare", *(["-r"] if os.getuid() else []), "-m", "sh", "-c", script],
      capture_output=True, text=True)
  if done.returncode == 99 or "unshare failed" in done.stderr:
    pytest.skip(f"This system mounts nothing here: {done.stderr}")
  told = (tmp_path / "full").read_text()
  assert (tmp_path / "code").read_text() == "1\n", told
  assert "can't be written: No space left on device" in told
  assert "To resume: " in told and "Traceback" not in told
  files = (tmp_path / "files").read_text().split()
  assert files and all(name.endswith(".npz") for name in files)
  assert "Finished 6,000 steps" in (tmp_path / "resumed").read_text()
  assert command.rows(tmp_path / "run") == command.rows(reference)
  command.assert_same_checkpoints(tmp_path / "run", reference)
