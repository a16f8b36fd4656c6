"""Runs continue after kills, moves, damaged files and failed environments."""

import os
import re
import shutil
import signal
import sys

import pytest

from agents.training.run_folder import checkpoint
from tests.behaviour import conftest
from tests.support import command

pytestmark = [
  pytest.mark.slow,
  pytest.mark.faults,
  pytest.mark.skipif(sys.platform != "linux", reason="Needs /proc."),
]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
  """Returns the folder of a killed run.

  Checks that a second process cannot train the run at the same time.
  """
  logdir = tmp_path_factory.mktemp("killed")
  process = command.start("train.py", *conftest.RUN, "--logdir", logdir, cwd=logdir)
  second_process = []

  def has_three_checkpoints():
    if len(list(logdir.glob("*/checkpoints/checkpoint-*.npz"))) < 3:
      return False
    # Stops the run, which could otherwise finish before the second process.
    process.send_signal(signal.SIGSTOP)
    second_process.append(command.run("train.py", "--resume", logdir, cwd=logdir))
    process.send_signal(signal.SIGCONT)
    return True

  code, _ = command.interrupt(process, signal.SIGKILL, has_three_checkpoints)
  assert code == -signal.SIGKILL
  (refused,) = second_process
  assert refused.returncode == 2
  assert "is being trained by another process" in refused.stdout.replace("\n", " ")
  return command.run_folder(logdir)


@pytest.mark.parametrize("damage", [False, True])
def test_killed_moved_and_resumed_run_equals_uninterrupted_run(damage, killed, reference, tmp_path):
  folder = tmp_path / "elsewhere"
  shutil.copytree(killed, folder)
  newest = checkpoint.newest(folder / "checkpoints")
  if damage:
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
  done = command.run("train.py", "--resume", folder, cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  assert (f"{newest} is damaged" in done.stdout) == damage
  assert command.rows(folder) == command.rows(reference)
  command.assert_same_checkpoints(folder, reference)


def test_run_survives_failed_environments_and_replay_repeats_a_failure(tmp_path):
  done = command.run(
    "train.py",
    "--config",
    "debug",
    "--steps",
    "1536",
    "--logdir",
    tmp_path / "logdir",
    "--set",
    "env.id=tests.environments.faulty_envs:Breaks",
    "--set",
    "max_env_restarts=100000",
    "--set",
    "num_workers=2",
    cwd=command.ROOT,
  )
  assert done.returncode == 0, done.stdout
  folder = command.run_folder(tmp_path / "logdir")
  last = [row for row in command.rows(folder) if row["phase"] == "train"][-1]
  output = done.stdout.replace("\n", " ")  # Long lines are wrapped.
  reported = re.findall(r"restart: Environment .*?ValueError: broken", output)
  assert 3 < last["restarts"] <= len(reported)
  assert len(os.listdir(folder / "crashes")) == 100  # The latest ones.
  crash = folder / "crashes" / sorted(os.listdir(folder / "crashes"))[0]
  replayed = command.run_agents("replay", crash, cwd=command.ROOT)
  assert replayed.returncode == 1
  assert replayed.stdout.endswith("ValueError: broken\n")
