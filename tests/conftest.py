"""Fixtures for all tests: quiet TensorFlow, no processes left, shared runs."""

import collections
import json
import os
import pathlib
import time

import pytest

from tests import command

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # Hides GPUs from runs, too.


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
  """Marks all variants of a test as slow but the first `fast_variants(n)`."""
  numbers = collections.Counter()
  for item in items:
    if mark := item.get_closest_marker("fast_variants"):
      test = item.path, item.originalname
      numbers[test] += 1
      if numbers[test] > mark.args[0]:
        item.add_marker(pytest.mark.slow)


def _children() -> set[int]:
  """Returns the child processes but the standard library's fork server."""
  with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
    pids = [int(pid) for pid in file.read().split()]
  return {pid for pid in pids if b"from multiprocessing." not in pathlib.Path(
      f"/proc/{pid}/cmdline").read_bytes()}


@pytest.fixture(autouse=True)
def nothing_left_running():
  """Checks that child processes end before their test."""
  if not os.path.exists("/proc"):
    yield
    return
  before = _children()
  yield
  left = _children() - before
  assert not left, f"Processes {left} outlive the test."


@pytest.fixture
def eagerly():
  """Runs functions eagerly, where compilation would take most of the time."""
  from tests import modes  # Imports TensorFlow after the variables are set.
  with modes.functions_run_eagerly():
    yield


def _shared_folder(tmp_path_factory) -> pathlib.Path:
  """Returns a folder that all processes of this test session share."""
  folder = tmp_path_factory.getbasetemp()
  return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def _finish(tmp_path_factory, name, args, steps):
  """Returns the run folder, the output and the current folder of a run.

  The first process that needs the run trains it for all processes.
  """
  place = _shared_folder(tmp_path_factory) / name
  logdir, cwd, result = place / "logdir", place / "cwd", place / "result.json"
  try:
    cwd.mkdir(parents=True)
  except FileExistsError:
    deadline = time.monotonic() + 200
    while not result.exists():
      assert time.monotonic() < deadline
      time.sleep(0.1)
  else:
    process = command.start_interpreter(
        "train.py", *args, "--steps", steps, "--logdir", logdir, cwd=cwd)
    output, _ = process.communicate(timeout=600)
    part = result.with_suffix(".part")
    part.write_text(json.dumps([process.returncode, output]))
    part.rename(result)
  code, output = json.loads(result.read_text())
  assert code == 0, output
  return command.run_folder(logdir), output, cwd


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
  """Runs folder, output and current folder of a short run."""
  return _finish(
      tmp_path_factory, "finished", command.SMALL, command.SMALL_STEPS)


@pytest.fixture(scope="session")
def finished_paper(tmp_path_factory):
  """Runs folder, output and current folder of a run with `--preset paper`."""
  return _finish(
      tmp_path_factory, "paper", command.PAPER, command.PAPER_STEPS)
