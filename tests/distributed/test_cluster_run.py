"""Training on several machines, simulated by processes on one host."""

import json
import re
import signal
import socket
import time

import numpy as np
import pytest

from agents import config as config_lib
from agents.distributed import cluster_run
from agents.training.run_folder import checkpoint, run_folder, run_lock
from tests.support import command, ports

# Settings of a run that takes several seconds.
_LONG_STEPS = 12_000
_LONG = (
  *command.SMALL,
  "--steps",
  _LONG_STEPS,
  "--set",
  "checkpoint_every=1000",
  "--set",
  "eval_every=11000",
)
_DATA_PARALLEL = (
  *command.SMALL,
  "--steps",
  command.SMALL_STEPS,
  "--set",
  "eval_every=2000",
  "--set",
  "data_parallel=true",
)


def test_machine_saves_in_the_folder_of_the_lost_machine_0_on_another_host(tmp_path, capsys):
  folder = run_folder.create(str(tmp_path), "test", config_lib.Config())
  machine_0 = run_lock.Owner("other.host", 7)
  for lost, message in (
    (None, "did not save the run: .* may still be trained by process 7 on other.host"),
    (machine_0, "Saved the run at step 5"),
  ):
    (folder.path / "lock").write_text(json.dumps(machine_0._asdict()))
    cluster_run._save(folder, lost, {"a": np.ones(2)}, {"step": 5})
    assert re.search(message, capsys.readouterr().err)
    assert len(checkpoint.paths(folder.checkpoints)) == (lost == machine_0)


# Environment with steps that take a different time on each machine.
_SLOW = """
import time
import gymnasium

class Slow(gymnasium.Wrapper):
  def step(self, action):
    time.sleep(0.001)
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
  """Runs `train.py` on several machines with separate logdirs.

  Args:
    tmp_path: Folder for the logdirs.
    num_machines: Number of processes.
    *args: Arguments of `train.py`.
    machine_args: Further arguments of each machine.
    variables: Environment variables of each machine.
  """

  def __init__(self, tmp_path, num_machines, *args, machine_args=(), variables=()):
    addresses = ",".join(f"127.0.0.1:{port}" for port in ports.free(num_machines))
    self.addresses = addresses.split(",")
    self.logdirs = [tmp_path / str(task) for task in range(num_machines)]
    (tmp_path / "secret").write_text("a secret of the machines")
    self.outputs: list[str] = []  # Console output of finished processes.
    self.processes = [
      command.start(
        "train.py",
        *args,
        "--cluster-secret-file",
        tmp_path / "secret",
        *(machine_args[task] if machine_args else ()),
        *(() if "--resume" in args else ("--logdir", self.logdirs[task])),
        "--cluster",
        addresses,
        "--task",
        task,
        cwd=tmp_path,
        variables=variables[task] if variables else None,
      )
      for task in range(num_machines)
    ]

  @property
  def folder(self):
    return command.run_folder(self.logdirs[0])

  def has_saved(self, num_checkpoints=1):
    """Returns whether machine 0 has saved at least this many checkpoints."""
    return len(list(self.logdirs[0].glob("*/checkpoints/checkpoint-*.npz"))) >= (num_checkpoints)

  def wait_until(self, ready):
    deadline = time.monotonic() + 100
    while not ready():
      assert time.monotonic() < deadline, self.end()
      assert all(process.poll() is None for process in self.processes), self.end()
      time.sleep(0.02)

  def end(self):
    """Waits for all processes; returns their exit codes and outputs."""
    outputs = [process.communicate(timeout=200)[0] for process in self.processes]
    return [process.returncode for process in self.processes], outputs


def _train(tmp_path, num_machines, *args, **kwargs):
  cluster = _Cluster(tmp_path, num_machines, *args, **kwargs)
  codes, cluster.outputs = cluster.end()
  assert codes == [0] * num_machines, cluster.outputs
  return cluster


@pytest.fixture(scope="module")
def data_parallel(tmp_path_factory):
  """Run folder of two machines that also share the updates."""
  return _train(tmp_path_factory.mktemp("data_parallel"), 2, *_DATA_PARALLEL).folder


@pytest.mark.slow
def test_data_parallel_updates_agree_up_to_rounding(data_parallel, finished):
  (arrays, metadata), (expected, _) = (
    checkpoint.load(checkpoint.newest(folder / "checkpoints"))
    for folder in (data_parallel, finished[0])
  )
  assert metadata["step"] == command.SMALL_STEPS
  for name, array in expected.items():
    if "kernel" in name and "adam" not in name:
      np.testing.assert_allclose(arrays[name], array, atol=1e-3, err_msg=name)
  # The rounding errors show that the gradients were summed over machines.
  assert any(arrays[name].tobytes() != array.tobytes() for name, array in expected.items())


@pytest.mark.slow
def test_interrupted_data_parallel_update_is_undone(tmp_path, data_parallel):
  cluster = _Cluster(tmp_path, 2, *_DATA_PARALLEL)
  cluster.wait_until(lambda: cluster.has_saved(2))
  _lose(cluster, 1)
  _train(tmp_path, 2, "--resume", cluster.folder)
  command.assert_same_checkpoints(cluster.folder, data_parallel)


@pytest.mark.slow
def test_four_machines_are_bit_equal_to_one_machine_with_whole_episodes(tmp_path, finished_paper):
  # In each update, two machines play two episodes each, and two machines play
  # one episode each.
  cluster = _train(tmp_path, 4, *command.PAPER, "--steps", command.PAPER_STEPS)
  command.assert_same_checkpoints(cluster.folder, finished_paper[0])
  assert command.rows(cluster.folder) == command.rows(finished_paper[0])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
  """Run folder of an uninterrupted run with `_LONG`."""
  logdir = tmp_path_factory.mktemp("logdir")
  done = command.run("train.py", *_LONG, "--logdir", logdir, cwd=logdir.parent)
  assert done.returncode == 0, done.stdout
  return command.run_folder(logdir)


def _lose(cluster, lost, signum=signal.SIGKILL):
  """Signals one of two machines; returns the output of the other one."""
  cluster.processes[lost].send_signal(signum)
  other = 1 - lost
  # TensorFlow detects the loss after ten seconds; then the run is saved.
  output, _ = cluster.processes[other].communicate(timeout=20)
  cluster.processes[lost].kill()
  cluster.processes[lost].communicate()
  assert cluster.processes[other].returncode == 1, output
  assert f"Lost machine {lost} ({cluster.addresses[lost]})." in output
  return output


@pytest.mark.slow
def test_run_survives_losses_of_both_machines_at_random_moments(tmp_path, uninterrupted):
  rng = np.random.default_rng(7)
  # A stopped machine counts as lost, too.
  for lost, signum in (0, signal.SIGKILL), (1, signal.SIGSTOP):
    # The same command resumes the run in its folder.
    cluster = _Cluster(tmp_path, 2, *_LONG)
    before = _newest(tmp_path / "0")
    cluster.wait_until(lambda before=before: _newest(tmp_path / "0") > before)
    time.sleep(rng.uniform(0.0, 0.3))
    output = _lose(cluster, lost, signum)
    folder = cluster.folder
    if lost == 0:  # The participant saves the run in the folder of machine 0.
      assert f"in {folder.resolve()}." in output
    else:
      assert f"train.py {folder}" in output
  assert _newest(tmp_path / "0") < _LONG_STEPS
  again = command.run("train.py", "--resume", folder, cwd=tmp_path)
  assert again.returncode == 0, again.stdout
  command.assert_same_checkpoints(folder, uninterrupted)
  assert command.rows(folder) == command.rows(uninterrupted)


def _newest(logdir):
  """Returns the step of the newest checkpoint in a logdir; 0 if none exists."""
  return max(map(checkpoint.step_of, logdir.glob("*/checkpoints/c*.npz")), default=0)


@pytest.mark.slow
def test_participant_without_the_run_folder_saves_in_its_own_logdir(tmp_path, uninterrupted):
  cluster = _Cluster(tmp_path, 2, *_LONG)
  cluster.wait_until(lambda: cluster.has_saved(2))
  hidden = tmp_path / "hidden"
  # Simulates a machine without access to the disk of machine 0.
  cluster.processes[0].kill()
  cluster.logdirs[0].rename(hidden)
  output, _ = cluster.processes[1].communicate(timeout=100)
  folder = command.run_folder(cluster.logdirs[1])
  assert f"in {folder}." in output
  again = command.run("train.py", "--resume", folder, cwd=tmp_path)
  assert again.returncode == 0, again.stdout
  command.assert_same_checkpoints(folder, uninterrupted)


@pytest.mark.slow
def test_environment_failure_of_a_participant_ends_the_run(tmp_path):
  (tmp_path / "failing_here.py").write_text(_FAILING)
  cluster = _Cluster(
    tmp_path,
    2,
    *command.SMALL,
    "--steps",
    20_000,
    "--set",
    "env.id=failing_here:make",
    "--set",
    "on_env_error=raise",
    variables=[{"PYTHONPATH": str(tmp_path), "FAIL_AFTER": after} for after in ("1000000", "700")],
  )
  codes, outputs = cluster.end()
  assert codes == [1, 1], outputs
  assert "RuntimeError: The motor is hot." in outputs[1]
  assert "Lost machine 1" in outputs[0]
  (crash,) = cluster.folder.glob("crashes/*")
  assert f"The failure is saved in {crash}" in outputs[1].replace(
    str(cluster.folder.resolve()), str(cluster.folder)
  )


@pytest.mark.slow
def test_run_that_a_signal_to_a_participant_stopped_can_resume(tmp_path, uninterrupted):
  cluster = _Cluster(tmp_path, 2, *_LONG)
  cluster.wait_until(lambda: cluster.has_saved(2))
  cluster.processes[1].send_signal(signal.SIGTERM)
  codes, outputs = cluster.end()
  assert codes == [128 + signal.SIGTERM] * 2, outputs
  stop = f"by SIGTERM on machine 1 ({cluster.addresses[1]})."
  assert re.search(f"Stopped after [0-9,]+ steps {re.escape(stop)}", outputs[0])
  assert f"Stopped {stop} Machine 0 has saved the run." in outputs[1]
  assert not cluster.logdirs[1].exists()  # Only machine 0 has a folder.
  # One machine can finish the run.
  again = command.run("train.py", cluster.folder, cwd=tmp_path)
  assert again.returncode == 0, again.stdout
  command.assert_same_checkpoints(cluster.folder, uninterrupted)
  assert command.rows(cluster.folder) == command.rows(uninterrupted)


@pytest.mark.slow
def test_different_settings_of_machines_are_an_error_and_leave_no_run_folder(tmp_path):
  cluster = _Cluster(tmp_path, 2, *_LONG, machine_args=[(), ("--set", "algorithm.discount=0.9")])
  codes, outputs = cluster.end()
  assert codes == [2, 2], outputs
  for output in outputs:
    assert (
      f"machine 1 ({cluster.addresses[1]}) and machine 0 differ in "
      "config: algorithm.discount 0.95 -> 0.9."
    ) in output
  assert not any(logdir.exists() for logdir in cluster.logdirs)


@pytest.mark.slow
def test_machines_with_different_secrets_do_not_train(tmp_path):
  (tmp_path / "other").write_text("the secret of another cluster")
  cluster = _Cluster(
    tmp_path, 2, *_LONG, machine_args=[(), ("--cluster-secret-file", tmp_path / "other")]
  )
  codes, outputs = cluster.end()
  assert codes == [2, 2], outputs
  for task, output in enumerate(outputs):
    assert f"machine {1 - task} ({cluster.addresses[1 - task]}) has another secret." in output
    assert f"listens on 0.0.0.0:{cluster.addresses[task].rpartition(':')[2]} and [::]" in output
  assert not any(logdir.exists() for logdir in cluster.logdirs)


@pytest.mark.slow
def test_participant_refuses_modules_that_its_user_has_not_used(tmp_path, monkeypatch):
  (tmp_path / "slow_there.py").write_text(_SLOW)
  config = config_lib.Config().override({"env.id": "slow_there:make"})
  with monkeypatch.context() as patch:
    patch.syspath_prepend(tmp_path)
    folder = run_folder.create(str(tmp_path / "logdir"), "slow", config)
  checkpoint.save(folder.checkpoints, 0, {}, {})
  cluster = _Cluster(
    tmp_path,
    2,
    "--resume",
    folder.path,
    variables=[{}, {"XDG_STATE_HOME": str(tmp_path / "state")}],
  )
  codes, outputs = cluster.end()
  assert codes == [1, 2], outputs
  assert f"{folder.path} names the module 'slow_there'" in outputs[1]
  assert f"add --code {tmp_path}\n" in outputs[1]


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_machine_alone_names_the_missing_machine_and_ends_on_a_signal(signum, tmp_path):
  first, second = (f"127.0.0.1:{port}" for port in ports.free(2))
  args = *_LONG, "--logdir", tmp_path / "logdir", "--cluster", f"{first},{second}", "--task", 0
  state = {"XDG_STATE_HOME": str(tmp_path / "state")}
  process = command.start("train.py", *args, cwd=tmp_path, variables=state)
  assert process.stdout.readline().startswith(f"Machine 0 ({first}) listens on 0.0.0.0:")
  assert process.stdout.readline().startswith("Warning: programs that reach port")
  assert process.stdout.readline() == "Waiting for other machines, for at most 120 seconds.\n"
  assert process.stdout.readline() == f"machine 1 ({second}): Connection refused\n"
  process.send_signal(signum)
  try:
    output, _ = process.communicate(timeout=10)
  finally:
    process.kill()
  assert "Stopped before all machines were connected." in output
  assert process.returncode == 128 + signum
  assert not (tmp_path / "logdir").exists()


@pytest.mark.slow
def test_number_of_machines_must_divide_number_of_environments(tmp_path):
  (tmp_path / "secret").write_text("a secret of the machines")
  args = "--cluster", "a:1,b:1,c:1", "--task", "0", "--cluster-secret-file", "secret"
  done = command.run("train.py", *_LONG, *args, cwd=tmp_path)
  assert done.returncode == 2
  assert (
    "num_envs=4 environments can't be shared evenly by 3 machines, only by 2, 4."
  ) in done.stdout


@pytest.mark.slow
def test_port_of_another_program_is_an_error(tmp_path):
  (tmp_path / "secret").write_text("a secret of the machines")
  with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
    done = command.run(
      "train.py",
      *_LONG,
      "--logdir",
      tmp_path / "logdir",
      "--cluster",
      f"127.0.0.1:{port},127.0.0.1:1",
      "--task",
      "0",
      "--cluster-secret-file",
      "secret",
      cwd=tmp_path,
    )
  assert done.returncode == 2
  assert f"can't listen as machine 0 (127.0.0.1:{port}): Address already" in (done.stdout)
  assert not (tmp_path / "logdir").exists()
