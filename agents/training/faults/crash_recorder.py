"""Keeps and counts what fails in the environments of a run."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

from agents import config as config_lib
from agents import errors
from agents.environments.data import failure_budget
from agents.training.faults import crash_folder
from agents.training.run_folder import run_folder


class CrashRecorder:
  """What was survived, and what was not.

  Args:
    folder: Of the run.
    config: Of the run.
    incidents: Where environments and workers leave word.
  """

  def __init__(self, folder: run_folder.RunFolder, config: config_lib.Config,
               incidents: failure_budget.FailureBudget):
    self._folder = folder.path / "crashes"
    self._config = config
    self._incidents = incidents
    self.count = 0  # Of environments and workers replaced in the whole run.

  def save_survived(self, step: int) -> Iterator[str]:
    """Count what was survived since the last call, keep it and yield a line.

    Args:
      step: Training steps so far.
    """
    for incident in self._incidents.take():
      self.count += 1
      kept = self._keep(step, incident)
      yield (f"step {step:,}: restart: {incident.summary} All of it is in "
             f"{kept}.")

  def save_fatal(self, step: int, error: Exception):
    """Keep what has led to an error, and say where.

    Args:
      step: Training steps so far.
      error: For which `is_environment_failure` holds.
    """
    incident = self._incidents.fatal or failure_budget.Failure(str(error))
    print(f"What failed is kept in {self._keep(step, incident)}.",
          file=sys.stderr)

  def _keep(self, step: int, incident: failure_budget.Failure) -> pathlib.Path:
    return crash_folder.save(self._folder, step, incident, self._config)


def is_environment_failure(error: Exception) -> bool:
  """Whether environments have failed, and the trainer is as it was."""
  return any(isinstance(x, errors.EnvironmentsError)
             for x in (error, error.__cause__))
