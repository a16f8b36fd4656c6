"""Counts failures of environments and saves them as crash folders."""

import pathlib
import sys

from agents import config as config_lib
from agents import errors
from agents.environments.data import failure_budget
from agents.training.faults import crash_folder
from agents.training.run_folder import run_folder


class CrashRecorder:
  """Saves the failures of one run.

  Attributes:
    count: Environments and workers replaced in the run, across resumes.

  Args:
    folder: Run folder.
    config: Configuration of the run.
    failures: Failures reported by environments and workers.
  """

  def __init__(self, folder: run_folder.RunFolder, config: config_lib.Config,
               failures: failure_budget.FailureBudget):
    self._folder = folder.path / "crashes"
    self._config = config
    self._failures = failures
    self.count = 0

  def save_survived(self, step: int) -> list[str]:
    """Count and save the failures that training survived since the last call.

    Args:
      step: Training steps completed.
    Returns:
      One line per failure for the console.
    """
    failures = self._failures.drain()
    self.count += len(failures)
    return [f"step {step:,}: restart: {failure.summary} "
            f"(details: {self._save(step, failure)})" for failure in failures]

  def save_fatal(self, step: int, error: Exception):
    """Save the failure that caused an error, and print the path.

    Args:
      step: Training steps completed.
      error: Error for which `is_environment_failure` is true.
    """
    failure = self._failures.fatal or failure_budget.Failure(str(error))
    print(f"The failure is saved in {self._save(step, failure)}.",
          file=sys.stderr)

  def _save(self, step: int, failure: failure_budget.Failure) -> pathlib.Path:
    return crash_folder.save(self._folder, step, failure, self._config)


def is_environment_failure(error: Exception) -> bool:
  """Return whether an error was caused by environments.

  Args:
    error: Error that ended an epoch.
  Returns:
    True if the trainer still has the state of the last complete epoch.
  """
  return any(isinstance(cause, errors.EnvironmentsError)
             for cause in (error, error.__cause__))
