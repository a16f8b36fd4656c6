"""Fixtures for all tests, such as finished runs that tests share."""

import collections
import gc
import json
import os
import pathlib
import signal
import time

import pytest

from tests.support import command, leftovers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Hides GPUs from this process and from the processes that it starts.
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
leftovers.adopt_orphans()
# `nohup` ignores SIGHUP. Programs that the tests start would inherit this, but
# they do not inherit handlers.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
  signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
  """Marks the variants of a test after the first `fast_variants(n)` as slow."""
  num_variants = collections.Counter()
  for item in items:
    if mark := item.get_closest_marker("fast_variants"):
      test = item.path, item.originalname
      num_variants[test] += 1
      if num_variants[test] > mark.args[0]:
        item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
  """Excludes the imported modules from garbage collection, which saves time."""
  gc.freeze()


@pytest.fixture(autouse=True)
def nothing_left_running():
  """Checks that all processes of a test end, also orphans and grandchildren."""
  before = leftovers.running()
  yield
  left = leftovers.wait(before, seconds=10)
  assert not left, f"These processes outlive the test: {left}"


@pytest.fixture(autouse=True, scope="session")
def separate_home(tmp_path_factory):
  """Keeps records of user modules and caches out of the user's home folder."""
  os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
  os.environ["XDG_CACHE_HOME"] = str(_shared_folder(tmp_path_factory) / "cache")


@pytest.fixture
def eagerly():
  """Runs functions eagerly, because compilation would take most of the time."""
  # TensorFlow must be imported after this module has set the variables above.
  from tests.support import modes

  with modes.functions_run_eagerly():
    yield


def _shared_folder(tmp_path_factory) -> pathlib.Path:
  """Returns a folder that all processes of this test session share."""
  folder = tmp_path_factory.getbasetemp()
  return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def _finish(tmp_path_factory, name, args, steps):
  """Returns the run folder, the output and the current folder of a run.

  The first test process that needs the run trains it. Other test processes wait
  until the run has finished.
  """
  folder = _shared_folder(tmp_path_factory) / name
  logdir, cwd = folder / "logdir", folder / "cwd"
  result = folder / "result.json"
  try:
    cwd.mkdir(parents=True)
  except FileExistsError:
    deadline = time.monotonic() + 200
    while not result.exists():
      assert time.monotonic() < deadline
      time.sleep(0.1)
  else:
    process = command.start_interpreter(
      "train.py", *args, "--steps", steps, "--logdir", logdir, cwd=cwd
    )
    output, _ = process.communicate(timeout=600)
    part = result.with_suffix(".part")
    part.write_text(json.dumps([process.returncode, output]))
    part.rename(result)
  code, output = json.loads(result.read_text())
  assert code == 0, output
  return command.run_folder(logdir), output, cwd


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
  """Returns run folder, output and current folder of a short run."""
  return _finish(tmp_path_factory, "finished", command.SMALL, command.SMALL_STEPS)


@pytest.fixture(scope="session")
def finished_paper(tmp_path_factory):
  """Returns run folder, output and current folder of a `--preset paper` run."""
  return _finish(tmp_path_factory, "paper", command.PAPER, command.PAPER_STEPS)
