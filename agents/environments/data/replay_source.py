"""Data from which a replaced worker rebuilds its environments."""

import dataclasses

import numpy as np

from agents.environments.blocks import base
from agents.environments.data import action_log
from agents.environments.data import failure_budget as failure_budget_lib


class ReplayError(base.EnvironmentFailure):
  """A replay of the recorded actions led to a different observation."""


@dataclasses.dataclass
class ReplaySource:
  """Running episodes of a batch, for replays and for failure reports."""

  name: str  # Name of the environments in messages.
  log: action_log.ActionLog  # The running episodes.
  arrays: dict[str, np.ndarray]  # Fields of the batch's buffer.
  # Bytes of the latest result that the trainer received, of shape [bytes]. The
  # observations come first. None before the first reset.
  received: np.ndarray | bytes | None = None

  def running(self) -> tuple[list[int], list[int], list[np.ndarray]]:
    """Returns index, seed and actions [steps, ...] of each running episode."""
    state = self.log.state
    # A log without steps does not contain the shape of actions.
    empty = self.arrays["action"][:0]
    return (
      state.episode.tolist(),
      state.seed.tolist(),
      [
        state.episode_actions(offset) if length else empty
        for offset, length in enumerate(self.log.length)
      ],
    )

  def failed_episodes(self, rows: slice, stepping: bool) -> list[failure_budget_lib.FailedEpisode]:
    """Returns running episodes as candidates for the cause of a failure.

    Args:
      rows: Environments of the failed worker.
      stepping: Whether a step was in progress. If so, the step's actions are
        appended to the recorded ones.

    Returns:
      One entry per environment of `rows`; none before the first reset.
    """
    if not self.log.begun:
      return []
    _, seeds, actions = self.running()
    failed = []
    for offset in range(rows.start, rows.stop):
      action = actions[offset]
      if stepping and self.arrays["active"][offset]:
        action = np.concatenate([action, self.arrays["action"][offset][None]])
      failed.append(
        failure_budget_lib.FailedEpisode(self.log.first + offset, seeds[offset], action)
      )
    return failed

  def check(self, rows: slice) -> None:
    """Compares the observations after a replay with the received ones.

    Args:
      rows: Environments that were replayed.

    Raises:
      ReplayError: If an observation differs in any bit.
    """
    if self.received is None:
      return
    for offset in range(rows.start, rows.stop):
      observ = self.arrays["observ"][offset]
      start = offset * observ.nbytes
      before = self.received[start : start + observ.nbytes]
      if observ.tobytes() != bytes(before):
        seed = int(self.log.state.seed[offset])
        raise ReplayError(
          f"Environment {self.log.first + offset} ('{self.name}') is not "
          f"deterministic: a replay of seed {seed} with the same "
          f"{self.log.length[offset]} actions led to another observation, so "
          "the episodes cannot be continued in another process.",
          self.log.first + offset,
          seed,
        )

  def record_fatal(
    self, error: Exception, failure_budget: failure_budget_lib.FailureBudget, stepping: bool = False
  ) -> None:
    """Stores the episode of the environment that caused a fatal error.

    Args:
      error: Error of an environment, a worker or another component.
      failure_budget: Its attribute `fatal` receives the failure.
      stepping: Whether a step was in progress.
    """
    for failure in (error, error.__cause__):
      if isinstance(failure, base.EnvironmentFailure):
        index, seed = failure.environment, failure.seed
        failed = self.failed_episodes(slice(0, len(self.arrays["active"])), stepping)
        # With another seed, the failed episode is not the recorded one: either
        # the next episode failed in its reset, or an environment of another
        # batch failed.
        failure_budget.fatal = failure_budget_lib.Failure(
          str(failure),
          tuple(
            episode
            if episode.seed == seed
            else episode._replace(seed=seed, action=episode.action[:0])
            for episode in failed
            if episode.environment == index and seed is not None
          ),
        )
