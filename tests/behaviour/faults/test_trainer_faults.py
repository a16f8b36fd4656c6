"""Runs handle diverged updates, full disks and closed outputs."""

import os
import shlex
import subprocess
import sys

import numpy as np
import pytest

from agents.training.run_folder import checkpoint, run_folder
from tests.behaviour import conftest
from tests.support import command

pytestmark = [
  pytest.mark.slow,
  pytest.mark.faults,
  pytest.mark.skipif(sys.platform != "linux", reason="Mounts file systems."),
]


def test_diverged_run_falls_back_three_times_and_ends_with_exit_code_3(tmp_path):
  done = command.run(
    "train.py",
    *command.SMALL,
    "--steps",
    "2000",
    "--logdir",
    tmp_path,
    "--set",
    "algorithm.learning_rate=1e30",
    "--set",
    "algorithm.max_grad_norm=1e30",
    cwd=tmp_path,
  )
  assert done.returncode == 3, done.stdout
  assert (
    done.stdout.replace("\n", " ").count("Training continues from the checkpoint of step 0") == 3
  )
  assert "Non-finite variables: policy/" in done.stdout.replace("\n", " ")
  assert "Traceback" not in done.stdout
  folder = command.run_folder(tmp_path)
  arrays, _ = checkpoint.load(checkpoint.newest(folder / "checkpoints"))
  assert all(
    np.isfinite(array).all() for name, array in arrays.items() if name.startswith("variable/")
  )


def test_run_continues_after_the_reader_of_its_output_has_ended(tmp_path):
  process = command.start_interpreter(
    "train.py",
    *command.PAPER,
    "--steps",
    command.PAPER_STEPS,
    "--set",
    "env.id=tests.environments.faulty_envs:Prints",  # Workers print, too.
    "--set",
    "num_workers=2",
    "--logdir",
    tmp_path / "logdir",
    cwd=command.ROOT,
  )
  assert process.stdout.read(1)
  process.stdout.close()
  assert process.wait(200) == 0
  folder = run_folder.find(tmp_path / "logdir")
  assert folder.complete and not (folder.path / "crashes").exists()


# Script that trains on a disk of 600 kB, and resumes after the disk has grown.
_ON_SMALL_DISK = """
mount -t tmpfs -o size=600k none {disk} || exit 99
{train} {args} --logdir {disk} > {out}/full 2>&1
echo $? > {out}/code
ls {disk}/*/checkpoints > {out}/files
mount -o remount,size=100m {disk}
{train} --resume {disk} > {out}/resumed 2>&1
cp -r {disk}/* {out}/run
"""


def test_run_resumed_after_a_full_disk_equals_an_uninterrupted_run(reference, tmp_path):
  disk = tmp_path / "disk"
  disk.mkdir()
  train = shlex.join([sys.executable, str(command.ROOT / "train.py")])
  script = _ON_SMALL_DISK.format(
    disk=disk, out=tmp_path, train=train, args=shlex.join(conftest.RUN)
  )
  done = subprocess.run(
    ["unshare", *(["-r"] if os.getuid() else []), "-m", "sh", "-c", script],
    capture_output=True,
    text=True,
  )
  if done.returncode == 99 or "unshare failed" in done.stderr:
    pytest.skip(f"This system cannot mount a tmpfs: {done.stderr}")
  output = (tmp_path / "full").read_text()
  assert (tmp_path / "code").read_text() == "1\n", output
  assert "can't be written: No space left on device" in output
  assert "To resume: " in output and "Traceback" not in output
  files = (tmp_path / "files").read_text().split()
  assert files and all(name.endswith(".npz") for name in files)
  assert "Finished 6,000 steps" in (tmp_path / "resumed").read_text()
  assert command.rows(tmp_path / "run") == command.rows(reference)
  command.assert_same_checkpoints(tmp_path / "run", reference)
