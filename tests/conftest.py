"""Quiets TensorFlow, and makes every test leave nothing running."""

import os

import pytest

from tests import command

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # Runs leave GPUs alone, too.


def _children() -> set[int]:
  with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
    return {int(pid) for pid in file.read().split()}


@pytest.fixture(autouse=True)
def nothing_left_running():
  """Fail a test whose child processes outlive it."""
  if not os.path.exists("/proc"):
    yield
    return
  before = _children()
  yield
  left = _children() - before
  assert not left, f"Processes {left} outlive the test."


@pytest.fixture
def eagerly():
  """Let a test compile nothing, where that would take longer than all else."""
  from tests import modes  # Imports TensorFlow, for which all is set above.
  with modes.functions_run_eagerly():
    yield


def _finish(tmp_path_factory, args, steps):
  """Return run folder of a run, its output, and where it was started."""
  logdir = tmp_path_factory.mktemp("logdir")
  cwd = tmp_path_factory.mktemp("cwd")
  done = command.run(
      "train.py", *args, "--steps", steps, "--logdir", logdir, cwd=cwd)
  assert done.returncode == 0, done.stdout
  return command.run_folder(logdir), done.stdout, cwd


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
  """Run folder of a short run, its output, and where it was started."""
  return _finish(tmp_path_factory, command.SMALL, command.SMALL_STEPS)


@pytest.fixture(scope="session")
def finished_paper(tmp_path_factory):
  """The same of a run with `--preset paper`."""
  return _finish(tmp_path_factory, command.PAPER, command.PAPER_STEPS)
