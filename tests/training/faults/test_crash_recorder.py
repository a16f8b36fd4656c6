"""What fails is counted, told and kept."""

import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.blocks import base
from agents.environments.data import failure_budget
from agents.training.faults import crash_folder
from agents.training.faults import crash_recorder
from agents.training.run_folder import run_folder

_WORKER = failure_budget.Failure("Worker 0 died. It was here:\n  File x.py")
_ENVIRONMENT = failure_budget.Failure(
    "Environment 3 failed in step():\n\nTraceback (most recent call last):\n"
    "  File x.py\nValueError: broken\n",
    (failure_budget.FailedEpisode(3, 5, np.ones((2, 1))),))


def _failures(tmp_path, incidents):
  config = config_lib.Config()
  folder = run_folder.create(str(tmp_path), "some", config)
  return crash_recorder.CrashRecorder(folder, config, incidents), folder.path / "crashes"


def test_what_is_survived_is_told_once(tmp_path):
  incidents = failure_budget.FailureBudget(9)
  kept, folder = _failures(tmp_path, incidents)
  assert not list(kept.save_survived(10)) and kept.count == 0
  incidents.survive(_WORKER)
  incidents.survive(_ENVIRONMENT)
  told = list(kept.save_survived(2000))
  assert told == [
      "step 2,000: restart: Worker 0 died. All of it is in "
      f"{folder}/000000002000-1.",
      "step 2,000: restart: Environment 3 failed in step(): ValueError: "
      f"broken All of it is in {folder}/000000002000-2."]
  assert kept.count == 2
  assert not list(kept.save_survived(3000))


def test_what_can_not_be_written_down_is_described(tmp_path):
  text = "FileNotFoundError: b\udce4r"  # As names of files in Latin-1 are read.
  incidents = failure_budget.FailureBudget(1)
  kept, folder = _failures(tmp_path, incidents)
  incidents.survive(failure_budget.Failure(text))
  assert len(list(kept.save_survived(1))) == 1
  crash, = folder.iterdir()
  assert crash_folder.load(crash).failure.text == r"FileNotFoundError: b\udce4r"


def test_what_is_not_survived_is_kept(tmp_path, capsys):
  incidents = failure_budget.FailureBudget(0)
  kept, folder = _failures(tmp_path, incidents)
  error = base.EnvironmentFailure("Environment 3 failed")
  assert crash_recorder.is_environment_failure(error)
  kept.save_fatal(7, error)
  assert not incidents.survive(_ENVIRONMENT)
  kept.save_fatal(8, error)
  first, second = (crash_folder.load(path) for path in sorted(folder.iterdir()))
  assert first.failure.text == "Environment 3 failed"
  assert not first.failure.broken
  assert second.failure.broken[0].seed == 5
  told = capsys.readouterr().err.splitlines()
  assert told == [f"What failed is kept in {path}."
                  for path in sorted(folder.iterdir())]
  assert kept.count == 0


@pytest.mark.parametrize("cause", [None, base.EnvironmentFailure("x")])
def test_an_environments_own_error_is_known_by_its_cause(cause):
  error = ValueError("broken")
  error.__cause__ = cause
  assert crash_recorder.is_environment_failure(error) == (cause is not None)
