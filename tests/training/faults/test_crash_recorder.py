"""Failures are counted, printed and saved."""

import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.blocks import base
from agents.environments.data import failure_budget
from agents.training.faults import crash_folder, crash_recorder
from agents.training.run_folder import run_folder

_WORKER_FAILURE = failure_budget.Failure(
    "Worker 0 died. It was here:\n  File x.py")
_ENVIRONMENT_FAILURE = failure_budget.Failure(
    "Environment 3 failed in step():\n\nTraceback (most recent call last):\n"
    "  File x.py\nValueError: broken\n",
    (failure_budget.FailedEpisode(3, 5, np.ones((2, 1))),))


def _recorder(tmp_path, failures):
  """Return a crash recorder and the folder of its crash folders."""
  config = config_lib.Config()
  folder = run_folder.create(str(tmp_path), "some", config)
  recorder = crash_recorder.CrashRecorder(folder, config, failures)
  return recorder, folder.path / "crashes"


def test_survived_failures_are_reported_once(tmp_path):
  failures = failure_budget.FailureBudget(9)
  recorder, folder = _recorder(tmp_path, failures)
  assert not recorder.save_survived(10) and recorder.count == 0
  failures.record(_WORKER_FAILURE)
  failures.record(_ENVIRONMENT_FAILURE)
  lines = recorder.save_survived(2000)
  assert lines == [
      "step 2,000: restart: Worker 0 died. "
      f"(details: {folder}/000000002000-1)",
      "step 2,000: restart: Environment 3 failed in step(): ValueError: "
      f"broken (details: {folder}/000000002000-2)"]
  assert recorder.count == 2
  assert not recorder.save_survived(3000)


def test_undecodable_characters_are_saved_escaped(tmp_path):
  text = "FileNotFoundError: b\udce4r"  # Python reads Latin-1 names like this.
  failures = failure_budget.FailureBudget(1)
  recorder, folder = _recorder(tmp_path, failures)
  failures.record(failure_budget.Failure(text))
  assert len(recorder.save_survived(1)) == 1
  crash, = folder.iterdir()
  failure = crash_folder.load(crash).failure
  assert failure.text == r"FileNotFoundError: b\udce4r"


def test_fatal_failures_are_saved(tmp_path, capsys):
  failures = failure_budget.FailureBudget(0)
  recorder, folder = _recorder(tmp_path, failures)
  error = base.EnvironmentFailure("Environment 3 failed")
  assert crash_recorder.is_environment_failure(error)
  recorder.save_fatal(7, error)
  assert not failures.record(_ENVIRONMENT_FAILURE)
  recorder.save_fatal(8, error)
  first, second = (crash_folder.load(path) for path in sorted(folder.iterdir()))
  assert first.failure.text == "Environment 3 failed"
  assert not first.failure.episodes
  assert second.failure.episodes[0].seed == 5
  lines = capsys.readouterr().err.splitlines()
  assert lines == [f"The failure is saved in {path}."
                   for path in sorted(folder.iterdir())]
  assert recorder.count == 0


@pytest.mark.parametrize("cause", [None, base.EnvironmentFailure("x")])
def test_environment_failure_is_recognized_by_its_cause(cause):
  error = ValueError("broken")
  error.__cause__ = cause
  assert crash_recorder.is_environment_failure(error) == (cause is not None)
