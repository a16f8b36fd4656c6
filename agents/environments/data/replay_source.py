"""Data from which a replaced worker rebuilds its environments."""

import numpy as np

from agents.environments.blocks import base
from agents.environments.data import failure_budget as failure_budget_lib
from agents.environments.data import running_episodes


class ReplayError(base.EnvironmentFailure):
  """A replay of the recorded actions led to another observation."""


class ReplaySource:
  """Running episodes of a batch, for replays and for failure reports.

  Args:
    name: Name of the environments, for messages.
    first: Index of the first environment within the batch of the run.
    log: Log of the running episodes.
    arrays: Fields of the batch's buffer.

  The attribute `observ` holds the latest observations that the trainer has
  received, [B, ...], or None.
  """

  def __init__(self, name: str, first: int, log: running_episodes.EpisodeLog,
               arrays: dict[str, np.ndarray]):
    self._name = name
    self._first = first
    self._log = log
    self._arrays = arrays
    self.observ: np.ndarray | None = None

  def running(self) -> tuple[list[int], list[int], list[np.ndarray]] | None:
    """Returns the running episodes, or None before the first reset.

    Returns:
      Number, seed and actions, of shape [steps, ...], of each episode.
    """
    if not self._log.begun:
      return None
    numbers, seeds, actions = self._log.history()
    empty = self._arrays["action"][:0]  # Has the shape of single actions.
    return numbers, seeds, [
        taken if len(taken) else empty for taken in actions]

  def failed_episodes(self, rows: slice, stepping: bool
                      ) -> list[failure_budget_lib.FailedEpisode]:
    """Returns running episodes as candidates for the cause of a failure.

    Args:
      rows: Environments of the failed worker.
      stepping: Whether a step was in progress; then its actions are appended.

    Returns:
      One entry per environment of `rows`.
    """
    if not (running := self.running()):
      return []
    _, seeds, actions = running
    failed = []
    for offset in range(*rows.indices(len(seeds))):
      action = actions[offset]
      if stepping and self._arrays["active"][offset]:
        action = np.concatenate([action, self._arrays["action"][offset][None]])
      failed.append(failure_budget_lib.FailedEpisode(
          self._first + offset, seeds[offset], action))
    return failed

  def check(self, rows: slice):
    """Compares the observations after a replay with those before.

    Args:
      rows: Environments that were replayed.

    Raises:
      ReplayError: If an observation differs in any bit.
    """
    if self.observ is None:
      return
    for offset in range(rows.start, rows.stop):
      observ, before = self._arrays["observ"][offset], self.observ[offset]
      if observ.tobytes() != before.tobytes():
        running = self.running()
        assert running is not None
        _, seeds, actions = running
        raise ReplayError(
            f"Environment {self._first + offset} ('{self._name}') is not "
            f"deterministic: a replay of seed {seeds[offset]} with the same "
            f"{len(actions[offset])} actions led to another observation, so "
            "its episodes cannot be continued in another process.",
            self._first + offset, seeds[offset])

  def record_fatal(self, error: Exception,
                   failure_budget: failure_budget_lib.FailureBudget,
                   stepping: bool = False):
    """Stores the episode of the environment that caused a fatal error.

    Args:
      error: Error of an environment, a worker or another component.
      failure_budget: Its attribute `fatal` receives the failure.
      stepping: Whether a step was in progress.
    """
    for failure in (error, error.__cause__):
      if isinstance(failure, base.EnvironmentFailure):
        failure_budget.fatal = self._failure(failure, stepping)

  def _failure(self, failure: base.EnvironmentFailure, stepping: bool
               ) -> failure_budget_lib.Failure:
    """Returns the failure, with its episode if it belongs to this batch."""
    index, seed = failure.environment, failure.seed
    size = len(self._arrays["active"])
    if index is None or seed is None or not (
        self._first <= index < self._first + size):
      return failure_budget_lib.Failure(str(failure))
    offset = index - self._first
    failed = self.failed_episodes(slice(offset, offset + 1), stepping)
    # The step may have ended the recorded episode before the next one failed.
    return failure_budget_lib.Failure(str(failure), tuple(
        one if one.seed == seed else failure_budget_lib.FailedEpisode(
            index, seed, one.action[:0]) for one in failed))
