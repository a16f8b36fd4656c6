"""Failures are counted, printed and saved."""

import resource

import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.blocks import base
from agents.environments.data import failure_budget
from agents.training.faults import crash_folder
from agents.training.run_folder import atomic_write, run_folder

_WORKER_FAILURE = failure_budget.Failure("Worker 0 died. It was here:\n  File x.py")
_ENVIRONMENT_FAILURE = failure_budget.Failure(
  "Environment 3 failed in step():\n\nTraceback (most recent call last):\n"
  "  File x.py\nValueError: broken\n",
  (failure_budget.FailedEpisode(3, 5, np.ones((2, 1))),),
)


@pytest.fixture
def run(tmp_path):
  return run_folder.create(str(tmp_path), "some", config_lib.Config())


def test_tolerated_failures_are_reported_once(run):
  failures = failure_budget.FailureBudget(9)
  assert not crash_folder.save_survived(run, failures, 10)
  failures.record(_WORKER_FAILURE)
  failures.record(_ENVIRONMENT_FAILURE)
  lines = crash_folder.save_survived(run, failures, 2000)
  assert lines == [
    f"step 2,000: restart: Worker 0 died. (details: {run.path}/crashes/000000002000-1)",
    "step 2,000: restart: Environment 3 failed in step(): ValueError: "
    f"broken (details: {run.path}/crashes/000000002000-2)",
  ]
  assert not crash_folder.save_survived(run, failures, 3000)


def test_undecodable_characters_are_saved_escaped(run):
  text = "FileNotFoundError: b\udce4r"  # From a file name in Latin-1.
  path = crash_folder.save(run, 1, failure_budget.Failure(text))
  failure = crash_folder.load(path).failure
  assert failure.text == r"FileNotFoundError: b\udce4r"


def test_fatal_failures_are_saved(run, capsys):
  failures = failure_budget.FailureBudget(0)
  error = base.EnvironmentFailure("Environment 3 failed")
  assert crash_folder.is_environment_failure(error)
  crash_folder.save_fatal(run, failures, 7, error)
  assert not failures.record(_ENVIRONMENT_FAILURE)
  crash_folder.save_fatal(run, failures, 8, error)
  paths = sorted((run.path / "crashes").iterdir())
  first, second = map(crash_folder.load, paths)
  assert first.failure.text == "Environment 3 failed"
  assert not first.failure.episodes
  assert second.failure.episodes[0].seed == 5
  lines = capsys.readouterr().err.splitlines()
  assert lines == [f"The failure is saved in {path}." for path in paths]


def test_latest_crash_folders_are_kept(run, monkeypatch):
  assert crash_folder._MAX_FOLDERS == 100  # As documented.
  monkeypatch.setattr(crash_folder, "_MAX_FOLDERS", 3)
  paths = [crash_folder.save(run, step, _ENVIRONMENT_FAILURE) for step in (9, 10, 10, 10, 10)]
  (run.path / "crashes" / "copy of a crash").mkdir()
  paths.append(crash_folder.save(run, 10, _ENVIRONMENT_FAILURE))
  assert len(set(paths)) == 6
  assert {path for path in paths if path.exists()} == set(paths[3:])
  # A run that has resumed from an earlier step keeps its own failures.
  path = crash_folder.save(run, 5, _ENVIRONMENT_FAILURE)
  assert crash_folder.load(path).failure.text == _ENVIRONMENT_FAILURE.text


def test_incomplete_crash_folder_is_deleted(run):
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))  # Too small for config.yaml.
  try:
    with pytest.raises(atomic_write.WriteError, match="too large"):
      crash_folder.save(run, 10, _WORKER_FAILURE)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
  assert not list((run.path / "crashes").iterdir())


def test_crash_folder_that_cannot_be_written_does_not_end_the_run(run, capsys):
  (run.path / "crashes").touch()
  failures = failure_budget.FailureBudget(1)
  failures.record(_WORKER_FAILURE)
  (line,) = crash_folder.save_survived(run, failures, 2000)
  assert line.startswith("step 2,000: restart: Worker 0 died. (details: no folder: ")
  assert f"{run.path}/crashes" in line and "can't be written" in line
  crash_folder.save_fatal(run, failures, 8, base.EnvironmentFailure("Environment 3 failed"))
  assert "The failure is saved in no folder: " in capsys.readouterr().err


@pytest.mark.parametrize("cause", [None, base.EnvironmentFailure("x")])
def test_environment_failure_is_recognized_by_its_cause(cause):
  error = ValueError("broken")
  error.__cause__ = cause
  assert crash_folder.is_environment_failure(error) == (cause is not None)
