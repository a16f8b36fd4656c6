"""Data that the machines exchange after each collected rollout."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agents import errors
from agents.environments.data import episode_data, failure_budget
from agents.training import epoch_result


class RolloutStatus(NamedTuple):
  """State of the environments that one machine steps."""

  # Running episodes of this machine's N environments. `actions` is empty,
  # because all machines have already gathered the actions. `first_row` counts
  # from the end of the actions, so its elements are zero or negative.
  episodes: episode_data.EpisodeState
  finished: list[episode_data.Episode]  # Ended episodes, in order of time.
  failures: list[failure_budget.Failure]  # Failures that machine 0 will report.
  seconds: float  # Time that this machine waited for its environments.

  def to_data(self) -> list[Any]:
    """Returns lists and arrays, from which `from_data` restores the status."""
    finished = [
      [episode.seed, episode.action, episode.score, episode.info, episode.environment]
      for episode in self.finished
    ]
    return [self.episodes, finished, self.failures, self.seconds]


def from_data(data: list[Any]) -> RolloutStatus:
  """Restores a status.

  Args:
    data: Result of `to_data`, with lists in place of tuples.
  """
  episodes, finished, failures, seconds = data
  return RolloutStatus(
    episode_data.EpisodeState(*episodes),
    [episode_data.Episode(*episode) for episode in finished],
    [
      failure_budget.Failure(text, tuple(failure_budget.FailedEpisode(*each) for each in failed))
      for text, failed in failures
    ],
    seconds,
  )


def merge_episodes(
  statuses: list[RolloutStatus],
  before: episode_data.EpisodeState | None,
  actions: np.ndarray | None,
) -> episode_data.EpisodeState:
  """Combines the running episodes of all machines.

  Args:
    statuses: Status of each machine.
    before: State of all environments at the previous exchange, if any.
    actions: Actions of all environments since the previous exchange,
      [T, B, ...], if any.

  Returns:
    State of all environments.
  """
  merged = episode_data.EpisodeState(
    *map(np.concatenate, zip(*(status.episodes for status in statuses), strict=True))
  )
  steps = int(merged.length.max())
  all_actions = np.concatenate(
    [part for part in (before and before.actions, actions) if part is not None and len(part)]
    or [np.zeros((0, len(merged.seed)))]
  )
  return merged._replace(
    first_row=steps + merged.first_row, actions=all_actions[len(all_actions) - steps :]
  )


def merge_finished(
  statuses: list[RolloutStatus], samples: epoch_result.Samples
) -> list[episode_data.Episode]:
  """Merges the finished episodes of all machines.

  Args:
    statuses: Status of each machine.
    samples: Samples of the epoch in which the episodes ended.

  Returns:
    Episodes in the order in which a single machine would record them: by time,
    then by index of the environment.
  """
  ended = samples.ended.numpy()
  queues = [iter(status.finished) for status in statuses]
  return [next(queues[row * len(statuses) // ended.shape[1]]) for _, row in np.argwhere(ended)]


def check_equal(values: Sequence[Any]) -> None:
  """Compares values that must be equal on all machines.

  Args:
    values: Value of each machine, such as a checksum of its variables.

  Raises:
    MachinesDiffer: If a value differs from the value of machine 0.
  """
  for rank, value in enumerate(values):
    if value != values[0]:
      raise errors.MachinesDiffer(
        f"Machine {rank} computed a different update than machine 0 from the "
        "same steps, because its processor or its libraries differ. Train on "
        "machines with the same processor and the same libraries."
      )
