"""Quiets TensorFlow, and makes every test leave nothing running."""

import json
import os
import time

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


def _finish(tmp_path_factory, name, args, steps):
  """Return run folder of a run, its output, and where it was started.

  Whichever process needs it first trains it, for all that test side by side.
  """
  place = tmp_path_factory.getbasetemp()
  if "PYTEST_XDIST_WORKER" in os.environ:
    place = place.parent
  place /= name
  logdir, cwd, told = place / "logdir", place / "cwd", place / "told.json"
  try:
    cwd.mkdir(parents=True)
  except FileExistsError:
    deadline = time.monotonic() + 200
    while not told.exists():
      assert time.monotonic() < deadline
      time.sleep(0.1)
  else:
    done = command.run(
        "train.py", *args, "--steps", steps, "--logdir", logdir, cwd=cwd)
    part = told.with_suffix(".part")
    part.write_text(json.dumps([done.returncode, done.stdout]))
    part.rename(told)
  code, output = json.loads(told.read_text())
  assert code == 0, output
  return command.run_folder(logdir), output, cwd


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
  """Run folder of a short run, its output, and where it was started."""
  return _finish(
      tmp_path_factory, "finished", command.SMALL, command.SMALL_STEPS)


@pytest.fixture(scope="session")
def finished_paper(tmp_path_factory):
  """The same of a run with `--preset paper`."""
  return _finish(
      tmp_path_factory, "paper", command.PAPER, command.PAPER_STEPS)
