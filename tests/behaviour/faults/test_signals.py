"""Signals end a run in ten seconds, and at most one epoch is lost."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agents.training.run_folder import checkpoint
from tests.support import command, forked

pytestmark = [
  pytest.mark.slow,
  pytest.mark.faults,
  pytest.mark.skipif(sys.platform != "linux", reason="Reads the links of /proc."),
]

_MAX_SECONDS = 10  # Limit in docs/reliability.md.
_STEPS_PER_EPOCH = 200

# Module with environments that sleep in `step`, and a function `fsync` that
# sleeps. Environment variables set the durations.
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
    if "checkpoint-000000000400" in path:
      _announce()
      time.sleep(float(os.environ["SECONDS_PER_WRITE"]))
    fsync(descriptor)
  os.fsync = slow_fsync


if __name__ == "__main__":
  patch_fsync()
  runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
# Module with an algorithm that does not end its third update.
_ENDLESS = """
import os

import tensorflow as tf

from agents.algorithms import ppo


class Endless(ppo.BatchPPO):
  # The third update changes the variables and then does not return.

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
  """Returns a folder with the modules `blocking` and `endless`."""
  folder = tmp_path_factory.mktemp("modules")
  (folder / "blocking.py").write_text(_BLOCKING)
  (folder / "endless.py").write_text(_ENDLESS)
  return folder


def _variables(modules, tmp_path, **variables):
  paths = os.pathsep.join((str(modules), str(command.ROOT)))
  return {"PYTHONPATH": paths, "STARTED": str(tmp_path / "started"), **variables}


def _args(checkpoint_every=10_000):
  """Returns arguments of a run of three epochs.

  By default, only the checkpoint of step 0 is due before the last epoch.
  """
  return (
    *command.SMALL,
    "--steps",
    600,
    "--set",
    "eval_every=600",
    "--set",
    "report_every=600",
    "--set",
    f"checkpoint_every={checkpoint_every}",
  )


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
  """Returns the folder of an uninterrupted run with a checkpoint per epoch."""
  logdir = tmp_path_factory.mktemp("uninterrupted")
  done = command.run(
    "train.py", *_args(checkpoint_every=_STEPS_PER_EPOCH), "--logdir", logdir, cwd=logdir
  )
  assert done.returncode == 0, done.stdout
  return command.run_folder(logdir)


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
    process.wait(timeout=_MAX_SECONDS)
  except subprocess.TimeoutExpired:
    process.kill()
    pytest.fail(
      f"The process did not end within {_MAX_SECONDS} seconds:\n{process.communicate()[0]}"
    )
  output, _ = process.communicate()
  assert process.returncode == 128 + signum, output
  folder = command.run_folder(logdir)
  assert f"train.py {folder}" in output
  assert "Traceback" not in output
  return output


def _check_saved(tmp_path, reference, steps):
  """Compares the newest checkpoint of a run with an uninterrupted run.

  Args:
    tmp_path: Parent of the logdir of the run.
    reference: Run folder of the uninterrupted run.
    steps: Steps at which the newest checkpoint may have been saved.
  """
  path = checkpoint.newest(command.run_folder(tmp_path / "logdir") / "checkpoints")
  assert checkpoint.step_of(path) in steps
  arrays, metadata = checkpoint.load(path)
  expected, expected_metadata = checkpoint.load(reference / "checkpoints" / path.name)
  assert arrays.keys() == expected.keys()
  for name, array in arrays.items():
    assert array.tobytes() == expected[name].tobytes(), name
  for name in ("step", "scores", "lengths", "reward_parts"):
    assert metadata[name] == expected_metadata[name]


@pytest.mark.parametrize("signum, delay", [(signal.SIGINT, 0.0), (signal.SIGHUP, 1.0)])
def test_signal_during_compilation_saves_the_run(signum, delay, reference, modules, tmp_path):
  logdir = tmp_path / "logdir"
  # The cache of compiled updates is empty.
  variables = _variables(modules, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
  process = command.start(
    "train.py", *_args(), "--logdir", logdir, cwd=modules, variables=variables
  )
  # The first checkpoint is written just before the first epoch.
  _wait_for(lambda: list(logdir.glob("*/checkpoints/checkpoint-*.npz")), process)
  time.sleep(delay)
  _signal(process, signum, logdir)
  _check_saved(tmp_path, reference, (0, _STEPS_PER_EPOCH))


@pytest.mark.parametrize("signum, seconds", [(signal.SIGINT, 1.0), (signal.SIGTERM, 10_000.0)])
def test_signal_during_environment_steps_saves_the_previous_epoch(
  signum, seconds, reference, modules, tmp_path
):
  logdir = tmp_path / "logdir"
  process = command.start(
    "train.py",
    *_args(),
    "--set",
    "env.id=blocking:make",
    "--logdir",
    logdir,
    cwd=modules,
    variables=_variables(modules, tmp_path, SLEEP_AFTER="120", SECONDS_PER_STEP=str(seconds)),
  )
  _wait_for((tmp_path / "started").exists, process)  # In the third epoch.
  _signal(process, signum, logdir)
  _check_saved(tmp_path, reference, [2 * _STEPS_PER_EPOCH])
  assert not (command.run_folder(logdir) / "crashes").exists()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_an_endless_update_saves_the_previous_epoch(
  signum, reference, modules, tmp_path
):
  logdir = tmp_path / "logdir"
  process = command.start(
    "train.py",
    *_args(),
    "--set",
    "algorithm.type=endless:Endless",
    "--logdir",
    logdir,
    cwd=modules,
    variables=_variables(modules, tmp_path, ENDLESS="1"),
  )
  _wait_for((tmp_path / "started").exists, process)
  output = _signal(process, signum, logdir)
  assert "The epoch took too long and was given up." in output
  # The update changed the variables before the signal. The checkpoint still
  # contains the variables from before the update.
  _check_saved(tmp_path, reference, [2 * _STEPS_PER_EPOCH])
  if signum == signal.SIGINT:
    return
  resumed = command.start(
    "train.py", "--resume", logdir, cwd=modules, variables=_variables(modules, tmp_path)
  )
  output, _ = resumed.communicate()
  assert resumed.returncode == 0, output
  assert command.rows(command.run_folder(logdir)) == command.rows(reference)
  _check_saved(tmp_path, reference, [3 * _STEPS_PER_EPOCH])


@pytest.mark.parametrize(
  "signum, seconds, saved_step", [(signal.SIGINT, 2.0, 400), (signal.SIGTERM, 10_000.0, 0)]
)
def test_signal_during_a_write_leaves_a_complete_checkpoint(
  signum, seconds, saved_step, reference, modules, tmp_path
):
  logdir = tmp_path / "logdir"
  arguments = command.ROOT / "train.py", *_args(checkpoint_every=400), "--logdir", logdir
  variables = _variables(modules, tmp_path, SECONDS_PER_WRITE=str(seconds))
  process = forked.Process(modules / "blocking.py", [*map(str, arguments)], modules, variables)
  _wait_for((tmp_path / "started").exists, process)
  output = _signal(process, signum, logdir)
  assert ("It took too long to stop." in output) == (saved_step == 0)
  _check_saved(tmp_path, reference, [saved_step])
