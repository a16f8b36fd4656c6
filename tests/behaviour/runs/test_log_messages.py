"""Commands print no log messages of TensorFlow and MuJoCo."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from agents.export import formats
from tests.support import command
from tests.videos import gl_support

pytestmark = pytest.mark.slow

# Parts of log messages, and starts of their lines.
_LOG_MESSAGE = re.compile(
  r"settotalmass|MUJOCO_LOG|oneDNN|cuInit|cuda|cpu_feature_guard|"
  r"computation.placer|absl|XNNPACK|^.*\.cc:\d+\]|^(WARNING|INFO|DEBUG)\b|"
  r"Warning: ",
  re.MULTILINE | re.IGNORECASE,
)
# Workers would inherit these variables, which hide the messages.
_VARIABLES = {
  name: value
  for name, value in os.environ.items()
  if name not in ("TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES")
}


def _run(cwd, *args):
  """Runs a command in a new interpreter, as users do; returns its output."""
  done = subprocess.run(
    [sys.executable, "-m", "agents", *map(str, args)],
    cwd=cwd,
    env={**_VARIABLES, "PYTHONPATH": str(command.ROOT)},
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    timeout=300,
  )
  assert done.returncode == 0, done.stdout
  assert not list(cwd.glob("MUJOCO_LOG*"))
  return done.stdout


def _train(tmp_path, *args):
  """Trains for one update; returns the run folder and the output."""
  cwd = tmp_path / "cwd"
  cwd.mkdir(exist_ok=True)
  output = _run(
    cwd,
    "train",
    "--logdir",
    tmp_path / "logdir",
    "--steps",
    64,
    "--set",
    "num_envs=4",
    "--set",
    "algorithm.segment_length=16",
    "--set",
    "algorithm.minibatch_size=64",
    "--set",
    "env.max_length=20",
    "--set",
    "eval_episodes=1",
    *args,
  )
  return command.run_folder(tmp_path / "logdir"), cwd, output


def test_training_prints_no_log_messages(tmp_path):
  folder, cwd, output = _train(tmp_path, "--config", "humanoid")
  assert "Finished 64 steps." in output
  assert not _LOG_MESSAGE.search(output), output
  # The resumed run loads the compiled update from the cache.
  output = _run(cwd, "train", folder, "--steps", 128)
  assert "Finished 128 steps." in output
  assert not _LOG_MESSAGE.search(output), output


_ENVIRONMENT = """
import tensorflow as tf
from tests import toy
class Env(toy.Target):
  def step(self, action):
    return super().step(tf.constant(action).numpy())
"""


def test_environment_that_uses_tensorflow_prints_no_log_messages(tmp_path):
  (tmp_path / "cwd").mkdir()
  (tmp_path / "cwd" / "own_env.py").write_text(_ENVIRONMENT)
  _, _, output = _train(tmp_path, "--config", "default", "--eager", "--set", "env.id=own_env:Env")
  assert not _LOG_MESSAGE.search(output), output


def test_commands_for_runs_print_no_log_messages(tmp_path):
  folder, cwd, output = _train(tmp_path, "--config", "cheetah", "--no-env-processes", "--eager")
  assert not _LOG_MESSAGE.search(output), output
  installed = [
    name for name in formats.NAMES if all(map(importlib.util.find_spec, formats.load(name).modules))
  ]
  commands = [
    ("export", folder, "--format", *installed, "--out", tmp_path / "policy"),
    ("report", folder, "--out", tmp_path / "report.html"),
  ]
  if gl_support.egl_works():
    commands.append(("visualize", folder, "--num-episodes", 1))
  for arguments in commands:
    output = _run(cwd, *arguments)
    assert not _LOG_MESSAGE.search(output), output


def test_check_prints_no_log_messages(tmp_path):
  changes = "--set", "env.max_length=20", "--set", "eager=true"
  output = _run(tmp_path, "check", "cheetah", *changes)
  assert not _LOG_MESSAGE.search(output), output
