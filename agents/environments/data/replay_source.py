"""Data from which a replaced worker rebuilds its environments."""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from agents.environments.blocks import base
from agents.environments.data import action_log
from agents.environments.data import failure_budget as failure_budget_lib


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

  def differing(self, rows: slice, results: Sequence[float | str] | None) -> dict[int, str]:
    """Compares replayed episodes with the recorded ones.

    Rewards are compared by their sum, which the log contains anyway.

    Args:
      rows: Environments that were replayed.
      results: Sum of the rewards in float32, or message of the failed step, of
        each environment. None compares only observations.

    Returns:
      A message for each environment with another observation, another sum of
      rewards, or a failed step, by index in the batch.
    """
    if self.received is None:
      return {}
    state, messages = self.log.state, {}
    for offset, result in itertools.zip_longest(range(rows.start, rows.stop), results or ()):
      observ = self.arrays["observ"][offset]
      start = offset * observ.nbytes
      equal_observ = observ.tobytes() == bytes(self.received[start : start + observ.nbytes])
      equal_score = result is None or result == state.score[offset]
      if isinstance(result, str):
        messages[offset] = result
      elif not (equal_observ and equal_score):
        messages[offset] = (
          f"Environment {self.log.first + offset} ('{self.name}') is not deterministic: a replay "
          f"of seed {state.seed[offset]} with the same {state.length[offset]} actions led to "
          f"another {'sum of rewards' if equal_observ else 'observation'}."
        )
    return messages

  def failure(self, messages: dict[int, str]) -> failure_budget_lib.Failure:
    """Describes environments that begin new episodes after their replays.

    Args:
      messages: Result of `differing`.
    """
    size, offsets = len(self.arrays["active"]), sorted(messages)
    listed = ", ".join(str(self.log.first + offset) for offset in offsets[:8])
    more = f" and {len(offsets) - 8} more" if len(offsets) > 8 else ""
    summary = (
      f"New episodes begin in {len(offsets)} of {size} environments ('{self.name}', index "
      f"{listed}{more}), because replays of their episodes led to other observations or rewards. "
      "Another processor, another version of a package, or randomness that does not depend on the "
      "seed can cause this; `python -m agents check` tests the environment."
    )
    episodes = self.failed_episodes(slice(0, size), stepping=False)
    return failure_budget_lib.Failure(
      "\n\n".join([summary, *(messages[offset] for offset in offsets)]),
      tuple(episodes[offset] for offset in offsets),
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
        recent = [action[None] for action in failure.actions]
        failed = self.failed_episodes(slice(0, len(self.arrays["active"])), stepping)
        # With another seed, the failed episode is not the recorded one: either
        # the next episode failed in its reset, or an environment of another
        # batch failed.
        failure_budget.fatal = failure_budget_lib.Failure(
          str(failure),
          tuple(
            episode._replace(
              seed=seed,
              action=np.concatenate(
                [episode.action if episode.seed == seed else episode.action[:0], *recent]
              ),
            )
            for episode in failed
            if episode.environment == index and seed is not None
          ),
        )
