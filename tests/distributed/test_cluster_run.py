"""Several machines are processes here, which meet on the loopback."""

import contextlib
import signal
import socket
import time

import numpy as np
import pytest

from agents.training.run_folder import checkpoint
from tests import command

# Some seconds long.
_LONG = (*command.SMALL, "--steps", "7000", "--set", "checkpoint_every=1000",
         "--set", "eval_every=6000")


def _ports(amount):
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(amount)]
    for each in sockets:
      each.bind(("127.0.0.1", 0))
    return [each.getsockname()[1] for each in sockets]

# Takes longer on one machine than on another.
_SLOW = """
import os
import time
import gymnasium

class Slow(gymnasium.Wrapper):
  def step(self, action):
    time.sleep(float(os.environ["SECONDS_A_STEP"]))
    return self.env.step(action)

def make() -> gymnasium.Env:
  return Slow(gymnasium.make("Pendulum-v1"))
"""

_FAILING = """
import os
import gymnasium

class Failing(gymnasium.Wrapper):
  steps = 0

  def step(self, action):
    self.steps += 1
    if self.steps > int(os.environ["FAIL_AFTER"]):
      raise RuntimeError("The motor is hot.")
    return self.env.step(action)

def make() -> gymnasium.Env:
  return Failing(gymnasium.make("Pendulum-v1"))
"""


class _Cluster:
  """Runs `train.py` on some machines, whose logdirs are their own."""

  def __init__(self, tmp_path, amount, *args, each=(), variables=()):
    addresses = ",".join(f"127.0.0.1:{port}" for port in _ports(amount))
    self.addresses = addresses.split(",")
    self.logdirs = [tmp_path / str(task) for task in range(amount)]
    self.outputs: list[str] = []  # Of those that have trained to the end.
    self.processes = [
        command.start("train.py", *args, *(each[task] if each else ()), *(
            () if "--resume" in args else ("--logdir", self.logdirs[task])),
                      "--cluster", addresses, "--task", task, cwd=tmp_path,
                      variables=variables[task] if variables else None)
        for task in range(amount)]

  @property
  def folder(self):
    return command.run_folder(self.logdirs[0])

  def begun(self, checkpoints=1):
    """Whether so many checkpoints have been saved."""
    return len(list(self.logdirs[0].glob("*/checkpoints/*.npz"))) >= (
        checkpoints)

  def wait_until(self, ready):
    deadline = time.monotonic() + 100
    while not ready():
      assert time.monotonic() < deadline, self.end()
      assert all(process.poll() is None for process in self.processes), (
          self.end())
      time.sleep(0.02)

  def end(self):
    """Return exit codes and outputs."""
    outputs = [process.communicate(timeout=200)[0]
               for process in self.processes]
    return [process.returncode for process in self.processes], outputs


def _train(tmp_path, amount, *args, **kwargs):
  cluster = _Cluster(tmp_path, amount, *args, **kwargs)
  codes, cluster.outputs = cluster.end()
  assert codes == [0] * amount, cluster.outputs
  return cluster


@pytest.mark.slow
def test_two_machines_are_like_one(tmp_path, finished):
  cluster = _train(tmp_path, 2, *command.SMALL, "--steps", command.SMALL_STEPS)
  command.assert_same_checkpoints(cluster.folder, finished[0])
  assert command.rows(cluster.folder) == command.rows(finished[0])
  assert not cluster.logdirs[1].exists()  # Only one of them has a folder.


@pytest.mark.slow
def test_shared_gradients_learn_the_same(tmp_path, finished):
  cluster = _train(tmp_path, 2, *command.SMALL, "--steps", command.SMALL_STEPS,
                   "--set", "data_parallel=true")
  (arrays, facts), (expected, _) = (
      checkpoint.load(checkpoint.newest(folder / "checkpoints"))
      for folder in (cluster.folder, finished[0]))
  assert facts["step"] == command.SMALL_STEPS
  for name, array in expected.items():
    if "kernel" in name and "adam" not in name:  # But for rounding errors.
      np.testing.assert_allclose(arrays[name], array, atol=1e-3, err_msg=name)
  # Where these are seen.
  assert any(arrays[name].tobytes() != array.tobytes()
             for name, array in expected.items())


@pytest.mark.slow
def test_an_update_that_was_shared_is_undone(tmp_path):
  args = (*_LONG, "--steps", "4000", "--set", "data_parallel=true")
  whole, cut = tmp_path / "whole", tmp_path / "cut"
  whole.mkdir()
  cut.mkdir()
  expected = _train(whole, 2, *args)
  cluster = _Cluster(cut, 2, *args)
  cluster.wait_until(lambda: cluster.begun(2))
  _lose(cluster, 1)
  _train(cut, 2, "--resume", cluster.folder)
  command.assert_same_checkpoints(cluster.folder, expected.folder)


@pytest.mark.slow
def test_four_machines_play_whole_episodes(tmp_path, finished_paper):
  # Of six episodes, two machines play two each; there are two to evaluate.
  cluster = _train(
      tmp_path, 4, *command.PAPER, "--steps", command.PAPER_STEPS)
  command.assert_same_checkpoints(cluster.folder, finished_paper[0])
  assert command.rows(cluster.folder) == command.rows(finished_paper[0])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """Run folder of what the next tests interrupt."""
  logdir = tmp_path_factory.mktemp("logdir")
  done = command.run("train.py", *_LONG, "--logdir", logdir, cwd=logdir.parent)
  assert done.returncode == 0, done.stdout
  return command.run_folder(logdir)


def _lose(cluster, lost, signum=signal.SIGKILL):
  """Lose a machine, and look at what the other one says."""
  began = time.monotonic()
  cluster.processes[lost].send_signal(signum)
  other = 1 - lost
  output, _ = cluster.processes[other].communicate(timeout=100)
  assert time.monotonic() < began + 60
  cluster.processes[lost].kill()
  cluster.processes[lost].communicate()
  assert cluster.processes[other].returncode == 1, output
  assert f"Lost machine {lost} ({cluster.addresses[lost]})." in output
  return output


@pytest.mark.slow
def test_one_machine_goes_on_where_another_was_lost(tmp_path, whole):
  cluster = _Cluster(tmp_path, 2, *_LONG)
  cluster.wait_until(lambda: cluster.begun(2))
  output = _lose(cluster, 1)
  assert f"--resume {cluster.folder}" in output
  again = command.run("train.py", "--resume", cluster.folder, cwd=tmp_path)
  assert again.returncode == 0, again.stdout
  command.assert_same_checkpoints(cluster.folder, whole)
  assert command.rows(cluster.folder) == command.rows(whole)


@pytest.mark.slow
def test_others_save_what_a_lost_first_machine_knew(tmp_path, whole):
  cluster = _Cluster(tmp_path, 2, *_LONG)
  cluster.wait_until(lambda: cluster.begun(2))
  output = _lose(cluster, 0)
  assert f"in {cluster.folder.resolve()}." in output
  _train(tmp_path, 2, "--resume", cluster.folder)
  command.assert_same_checkpoints(cluster.folder, whole)
  assert command.rows(cluster.folder) == command.rows(whole)


@pytest.mark.slow
def test_five_kills_at_random_moments(tmp_path):
  args = (*command.SMALL, "--steps", 30_000, "--set", "checkpoint_every=1000",
          "--set", "eval_every=15000")
  alone = command.run(
      "train.py", *args, "--logdir", tmp_path / "alone", cwd=tmp_path)
  assert alone.returncode == 0, alone.stdout
  rng = np.random.default_rng(7)
  for _ in range(5):
    cluster = _Cluster(tmp_path, 2, *args)
    before = _newest(tmp_path / "0")
    cluster.wait_until(lambda before=before: _newest(tmp_path / "0") > before)
    time.sleep(rng.uniform(0.0, 0.7))
    _lose(cluster, int(rng.integers(2)))
  folder = cluster.folder  # The only one: the same command goes on with it.
  assert _newest(tmp_path / "0") < 30_000
  _train(tmp_path, 2, *args)
  expected = command.run_folder(tmp_path / "alone")
  command.assert_same_checkpoints(folder, expected)
  assert command.rows(folder) == command.rows(expected)


def _newest(logdir):
  """Return the step of the newest checkpoint of the only run, 0 without."""
  return max(map(checkpoint.step_of, logdir.glob("*/checkpoints/c*.npz")),
             default=0)


@pytest.mark.slow
def test_a_machine_of_its_own_saves_in_its_own_logdir(tmp_path, whole):
  cluster = _Cluster(tmp_path, 2, *_LONG)
  cluster.wait_until(lambda: cluster.begun(2))
  hidden = tmp_path / "hidden"
  # As on a machine that does not see the first one's disk.
  cluster.processes[0].kill()
  cluster.logdirs[0].rename(hidden)
  output, _ = cluster.processes[1].communicate(timeout=100)
  folder = command.run_folder(cluster.logdirs[1])
  assert f"in {folder}." in output
  again = command.run("train.py", "--resume", folder, cwd=tmp_path)
  assert again.returncode == 0, again.stdout
  command.assert_same_checkpoints(folder, whole)


@pytest.mark.slow
def test_a_machine_that_is_slow_is_named(tmp_path):
  (tmp_path / "slow_here.py").write_text(_SLOW)
  cluster = _Cluster(
      tmp_path, 2, *command.SMALL, "--steps", 3000, "--set",
      "env.id=slow_here:make", "--set", "eval_every=3000", variables=[
          {"PYTHONPATH": str(tmp_path), "SECONDS_A_STEP": seconds}
          for seconds in ("0", "0.015")])  # Others may use the cores, too.
  codes, outputs = cluster.end()
  assert codes == [0, 0], outputs
  assert outputs[0].count("all wait for machine 1, which takes") == 1


@pytest.mark.slow
def test_a_machine_may_be_asked_to_stop_while_all_evaluate(tmp_path, whole):
  args = (*_LONG, "--set", "eval_episodes=2000")
  cluster = _Cluster(tmp_path, 2, *args)
  cluster.wait_until(lambda: _newest(tmp_path / "0") >= 5_000)
  time.sleep(2.0)
  cluster.processes[1].send_signal(signal.SIGTERM)
  codes, outputs = cluster.end()
  assert codes == [1, 128 + signal.SIGTERM], outputs
  assert "Stopped after" in outputs[0]


@pytest.mark.slow
def test_an_environment_that_fails_on_another_machine(tmp_path):
  (tmp_path / "failing_here.py").write_text(_FAILING)
  cluster = _Cluster(
      tmp_path, 2, *command.SMALL, "--steps", 20_000, "--set",
      "env.id=failing_here:make", "--set", "on_env_error=raise", variables=[
          {"PYTHONPATH": str(tmp_path), "FAIL_AFTER": after}
          for after in ("1000000", "700")])
  codes, outputs = cluster.end()
  assert codes == [1, 1], outputs
  assert "RuntimeError: The motor is hot." in outputs[1]
  assert "Lost machine 1" in outputs[0]
  crash, = cluster.folder.glob("crashes/*")
  assert f"What failed is kept in {crash}" in outputs[1].replace(
      str(cluster.folder.resolve()), str(cluster.folder))


@pytest.mark.slow
def test_a_machine_that_hangs_is_lost(tmp_path):
  cluster = _Cluster(tmp_path, 2, *_LONG)
  cluster.wait_until(lambda: cluster.begun(2))
  _lose(cluster, 1, signal.SIGSTOP)


@pytest.mark.slow
def test_any_machine_may_be_asked_to_stop(tmp_path, whole):
  cluster = _Cluster(tmp_path, 2, *_LONG)
  cluster.wait_until(lambda: cluster.begun(2))
  cluster.processes[1].send_signal(signal.SIGTERM)
  codes, outputs = cluster.end()
  assert codes == [1, 128 + signal.SIGTERM], outputs
  assert "Stopped after" in outputs[0]
  # Finished by the same command, with any number of machines.
  again = _train(tmp_path, 4, *_LONG)
  assert f"Resuming {cluster.folder}, which" in again.outputs[0]
  command.assert_same_checkpoints(cluster.folder, whole)
  assert command.rows(cluster.folder) == command.rows(whole)


@pytest.mark.slow
def test_machines_differ(tmp_path):
  cluster = _Cluster(tmp_path, 2, *_LONG, each=[
      (), ("--set", "algorithm.discount=0.9")])
  codes, outputs = cluster.end()
  assert codes == [2, 2], outputs
  for output in outputs:
    assert (f"machine 1 ({cluster.addresses[1]}) has other config than machine "
            "0: algorithm.discount 0.95 -> 0.9.") in output
  assert not any(logdir.exists() for logdir in cluster.logdirs)


def test_environments_are_not_shared_evenly(tmp_path):
  done = command.run(
      "train.py", *_LONG, "--cluster", "a:1,b:1,c:1", "--task", "0",
      cwd=tmp_path)
  assert done.returncode == 2
  assert ("num_envs=4 environments can't be shared evenly by 3 machines, only "
          "by 2, 4.") in done.stdout


@pytest.mark.slow
def test_another_program_is_at_the_port(tmp_path):
  with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
    done = command.run(
        "train.py", *_LONG, "--logdir", tmp_path / "logdir", "--cluster",
        f"127.0.0.1:{port},127.0.0.1:1", "--task", "0", cwd=tmp_path)
  assert done.returncode == 2
  assert f"This can't be machine 0 (127.0.0.1:{port}): Address already" in (
      done.stdout)
  assert not (tmp_path / "logdir").exists()
