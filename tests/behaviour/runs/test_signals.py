"""Ctrl-C and SIGTERM end a run in ten seconds and lose at most one epoch."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agents.training.run_folder import checkpoint
from tests import command
from tests.behaviour import conftest

pytestmark = [
    pytest.mark.slow, pytest.mark.faults, pytest.mark.skipif(
        sys.platform != "linux", reason="Reads the links of /proc.")]

_SECONDS = 10  # The promise.
_STEPS_PER_EPOCH = 200

# Pendulum environments, an algorithm and a disk that block on request.
_BLOCKING = """
import os
import pathlib
import runpy
import sys
import time

import gymnasium


def _announce():
  pathlib.Path(os.environ["STARTED"]).touch()


class Sleeping(gymnasium.Wrapper):
  num_steps = 0

  def step(self, action):
    self.num_steps += 1
    if "SLEEP_AFTER" in os.environ and (
        self.num_steps > int(os.environ["SLEEP_AFTER"])):
      _announce()
      time.sleep(float(os.environ["SECONDS_PER_STEP"]))
    return self.env.step(action)


def make() -> gymnasium.Env:
  return Sleeping(gymnasium.make("Pendulum-v1"))


def patch_fsync():
  fsync = os.fsync
  def slow_fsync(descriptor):
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if "checkpoint-000000001000" in path:
      _announce()
      time.sleep(float(os.environ["SECONDS_PER_WRITE"]))
    fsync(descriptor)
  os.fsync = slow_fsync


if __name__ == "__main__":
  patch_fsync()
  runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
_ENDLESS = """
import os

import tensorflow as tf

from agents.algorithms import ppo


class Endless(ppo.BatchPPO):
  # The third update changes the variables, and then it never returns.

  def learn(self, batch, step_counter, progress):
    metrics, advantage = super().learn(batch, step_counter, progress)
    if "ENDLESS" not in os.environ:
      return metrics, advantage
    def announce_and_loop():
      with tf.control_dependencies([
          *metrics.values(), tf.io.write_file(os.environ["STARTED"], "")]):
        return tf.while_loop(
            lambda count: count < 2 ** 62, lambda count: (count + 1,),
            [tf.constant(0, tf.int64)])[0]
    count = tf.cond(step_counter >= 100, announce_and_loop,
                    lambda: tf.constant(0, tf.int64))
    with tf.control_dependencies([count]):
      return {name: tf.identity(value)
              for name, value in metrics.items()}, advantage
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
  """Folder with the modules `blocking` and `endless`."""
  folder = tmp_path_factory.mktemp("modules")
  (folder / "blocking.py").write_text(_BLOCKING)
  (folder / "endless.py").write_text(_ENDLESS)
  return folder


def _variables(modules, tmp_path, **more):
  paths = os.pathsep.join((str(modules), str(command.ROOT)))
  return {"PYTHONPATH": paths, "STARTED": str(tmp_path / "started"), **more}


def _uninterrupted(tmp_path_factory, modules, *args):
  """Returns the run folder of a complete run that nothing blocks."""
  logdir = tmp_path_factory.mktemp("uninterrupted") / "logdir"
  process = command.start(
      "train.py", *args, "--logdir", logdir, cwd=modules,
      variables=_variables(modules, logdir.parent))
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 0, output
  return command.run_folder(logdir)


_SLEEPING = (
    *command.SMALL, "--steps", 1000, "--set", "env.id=blocking:make", "--set",
    "eval_every=1000")
_LOOPING = (
    *command.SMALL, "--steps", 800, "--set", "checkpoint_every=400", "--set",
    "algorithm.type=endless:Endless", "--set", "eval_every=800")


@pytest.fixture(scope="module")
def sleeping(tmp_path_factory, modules):
  """Run folder of a complete run with the arguments _SLEEPING."""
  return _uninterrupted(tmp_path_factory, modules, *_SLEEPING)


@pytest.fixture(scope="module")
def looping(tmp_path_factory, modules):
  """Run folder of a complete run with the arguments _LOOPING."""
  return _uninterrupted(tmp_path_factory, modules, *_LOOPING)


def _wait_for(condition, process):
  deadline = time.monotonic() + 200
  while not condition():
    assert process.poll() is None, process.communicate()[0]
    assert time.monotonic() < deadline
    time.sleep(0.02)


def _signal(process, signum, logdir):
  """Sends a signal, checks how the process ends, and returns its output."""
  process.send_signal(signum)
  try:
    process.wait(timeout=_SECONDS)
  except subprocess.TimeoutExpired:
    process.kill()
    pytest.fail(f"It takes more than {_SECONDS} seconds to stop:\n"
                f"{process.communicate()[0]}")
  output, _ = process.communicate()
  assert process.returncode == 128 + signum, output
  folder = command.run_folder(logdir)
  assert f"--resume {folder}" in output
  assert "Traceback" not in output
  return output


def _resume(modules, tmp_path, expected):
  """Resumes the run, and compares it with an uninterrupted one."""
  process = command.start(
      "train.py", "--resume", tmp_path / "logdir", cwd=modules,
      variables=_variables(modules, tmp_path))
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 0, output
  folder = command.run_folder(tmp_path / "logdir")
  assert command.rows(folder) == command.rows(expected)
  command.assert_same_checkpoints(folder, expected)


@pytest.mark.parametrize("signum, delay", [
    (signal.SIGINT, 0.0), (signal.SIGTERM, 1.0)])
def test_signal_during_compilation(
    signum, delay, reference, modules, tmp_path):
  logdir = tmp_path / "logdir"
  process = command.start(
      "train.py", *conftest.RUN, "--logdir", logdir, cwd=modules,
      variables=_variables(modules, tmp_path))
  # The first checkpoint is written just before the first epoch.
  _wait_for(lambda: list(logdir.glob("*/checkpoints/*.npz")), process)
  time.sleep(delay)
  _signal(process, signum, logdir)
  newest = checkpoint.newest(command.run_folder(logdir) / "checkpoints")
  assert checkpoint.step_of(newest) <= _STEPS_PER_EPOCH
  _resume(modules, tmp_path, reference)


@pytest.mark.parametrize("signum, seconds", [
    (signal.SIGINT, 1.0), (signal.SIGTERM, 10_000.0)])
def test_signal_during_collection(
    signum, seconds, sleeping, modules, tmp_path):
  logdir = tmp_path / "logdir"
  process = command.start(
      "train.py", *_SLEEPING, "--logdir", logdir, cwd=modules,
      variables=_variables(modules, tmp_path, SLEEP_AFTER="120",
                           SECONDS_PER_STEP=str(seconds)))
  _wait_for((tmp_path / "started").exists, process)  # In the third epoch.
  _signal(process, signum, logdir)
  newest = checkpoint.newest(command.run_folder(logdir) / "checkpoints")
  assert checkpoint.step_of(newest) == 2 * _STEPS_PER_EPOCH
  assert not (newest.parents[1] / "crashes").exists()
  _resume(modules, tmp_path, sleeping)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_an_endless_update(
    signum, looping, modules, tmp_path):
  logdir = tmp_path / "logdir"
  process = command.start(
      "train.py", *_LOOPING, "--set", "checkpoint_every=10000", "--logdir",
      logdir, cwd=modules, variables=_variables(modules, tmp_path, ENDLESS="1"))
  _wait_for((tmp_path / "started").exists, process)
  output = _signal(process, signum, logdir)
  assert "The epoch took too long and was given up." in output
  # The update has changed the variables before the thread has saved them.
  path = checkpoint.newest(command.run_folder(logdir) / "checkpoints")
  arrays, metadata = checkpoint.load(path)
  assert metadata["step"] == 2 * _STEPS_PER_EPOCH
  undisturbed, _ = checkpoint.load(looping / "checkpoints" / path.name)
  assert arrays.keys() == undisturbed.keys()
  for name, array in arrays.items():
    assert array.tobytes() == undisturbed[name].tobytes(), name
  process = command.start(
      "train.py", "--resume", logdir, cwd=modules,
      variables=_variables(modules, tmp_path))
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 0, output
  assert command.rows(path.parents[1]) == command.rows(looping)


@pytest.mark.parametrize("signum, seconds, saved_step", [
    (signal.SIGINT, 2.0, 1000), (signal.SIGTERM, 10_000.0, 0)])
def test_signal_during_a_checkpoint_write(
    signum, seconds, saved_step, reference, modules, tmp_path):
  logdir = tmp_path / "logdir"
  process = subprocess.Popen(
      [sys.executable, modules / "blocking.py", command.ROOT / "train.py",
       *map(str, conftest.RUN), "--logdir", logdir], cwd=modules,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={
          **os.environ, **_variables(
              modules, tmp_path, SECONDS_PER_WRITE=str(seconds))})
  _wait_for((tmp_path / "started").exists, process)
  output = _signal(process, signum, logdir)
  assert ("It took too long to stop." in output) == (saved_step == 0)
  newest = checkpoint.newest(command.run_folder(logdir) / "checkpoints")
  checkpoint.load(newest)
  assert checkpoint.step_of(newest) == saved_step
  _resume(modules, tmp_path, reference)
