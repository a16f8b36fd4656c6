"""Finished and failed episodes of a batch."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from agents.environments.blocks import base
from agents.environments.data import episodes, running_episodes
from agents.environments.data import failure_budget as failure_budget_lib


class EpisodeStatistics:
  """Collects the episodes that end.

  Args:
    log: Log of the batch's running episodes; every step is recorded in it.
    failure_budget: Number of episodes that may fail.
    first: Index of the first environment within the batch of the run.
  """

  def __init__(self, log: running_episodes.EpisodeLog,
               failure_budget: failure_budget_lib.FailureBudget, first: int):
    self._log = log
    self._failure_budget = failure_budget
    self._first = first
    self._finished: list[episodes.Episode] = []
    self._final_observ: list[np.ndarray] = []

  def update(self, arrays: dict[str, np.ndarray],
             reports: Mapping[int, base.StepReport], waiting: bool):
    """Records one step of all environments.

    Args:
      arrays: Fields of the batch's buffer after the step.
      reports: Reports of episodes that ended or failed, by index in the run's
        batch.
      waiting: Whether some environments may be inactive.

    Raises:
      EnvironmentFailure: If more episodes fail than the budget allows.
    """
    ended: np.ndarray | None = None  # Most steps end no episode.
    if reports or waiting:
      ended = arrays["terminated"] | arrays["truncated"]
      if reports:
        ended |= arrays["active"] & ~arrays["valid"]  # Failed episodes.
    finished = self._log.record(
        arrays["action"], arrays["active"], arrays["reward"], ended)
    for offset, episode in finished.items():
      report = reports[self._first + offset]
      if isinstance(report.outcome, str):
        self._fail(report.outcome, offset, episode.seed, episode.action)
      else:
        self._finished.append(
            dataclasses.replace(episode, info=report.outcome))
        self._final_observ.append(arrays["final_observ"][offset].copy())
      for text in report.failed_resets:
        self._fail(text, offset, self._log.skip(offset), episode.action[:0])

  def take_finished(self) -> list[episodes.Episode]:
    """Returns the episodes that ended since the previous call, in order."""
    finished, self._finished = self._finished, []
    return finished

  def take_final_observ(self) -> list[np.ndarray]:
    """Returns the last observations of episodes that ended since the last call.

    Returns:
      One array of shape [...] per episode, in order of time.
    """
    final_observ, self._final_observ = self._final_observ, []
    return final_observ

  def _fail(self, text: str, offset: int, seed: int, action: np.ndarray):
    failed = failure_budget_lib.FailedEpisode(
        self._first + offset, seed, action)
    if not self._failure_budget.record(
        failure_budget_lib.Failure(text, (failed,))):
      raise base.EnvironmentFailure(text)
