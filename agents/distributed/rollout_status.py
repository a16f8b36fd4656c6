"""The Python objects that machines exchange after every collection."""

from typing import Any, NamedTuple

import numpy as np

from agents import errors
from agents.environments.data import episodes, failure_budget
from agents.training import epoch_result


class RolloutStatus(NamedTuple):
  """State of the environments that one machine steps."""

  episodes: episodes.EpisodeState  # Running episodes, without actions.
  length: np.ndarray  # [N] int64, steps of each running episode.
  finished: list[episodes.Episode]  # In order of time.
  failures: list[failure_budget.Failure]  # For the report of machine 0.
  stop: bool  # Whether this machine was asked to end the run.
  seconds: float  # Time that this machine waited for its environments.


def merge_episodes(statuses: list[RolloutStatus],
                   before: episodes.EpisodeState | None,
                   actions: np.ndarray | None) -> episodes.EpisodeState:
  """Combines the running episodes of all machines.

  Args:
    statuses: Status of each machine.
    before: State of all environments at the previous exchange.
    actions: Actions of all environments since then, [T, B, ...].

  Returns:
    State of all environments.
  """
  length = np.concatenate([status.length for status in statuses])
  known = before.actions if before is not None else None
  if actions is not None:
    known = actions if known is None or not len(known) else (
        np.concatenate([known, actions.astype(known.dtype, copy=False)]))
  steps = int(length.max())
  if known is None:
    known = np.zeros((0, len(length)))
  known = known[len(known) - steps:]
  def combined(name):
    return np.concatenate(
        [getattr(status.episodes, name) for status in statuses])
  return episodes.EpisodeState(
      combined("episode"), combined("seed"), combined("observ"),
      combined("score"), steps - length, known)


def merge_finished(statuses: list[RolloutStatus],
                   samples: epoch_result.Samples) -> list[episodes.Episode]:
  """Orders the finished episodes of all machines as on one machine.

  Args:
    statuses: Status of each machine.
    samples: Samples of the epoch in which the episodes ended.

  Returns:
    Episodes in order of time, then of environments.
  """
  ended = samples.ended.numpy()
  queues = [iter(status.finished) for status in statuses]
  return [next(queues[row * len(statuses) // ended.shape[1]])
          for _, row in np.argwhere(ended)]


def check_equal(values: list[Any]):
  """Compares values that must be equal on all machines.

  Args:
    values: Value of each machine, such as a checksum of its variables.

  Raises:
    MachinesDiffer: If a value differs from that of machine 0.
  """
  for rank, value in enumerate(values):
    if value != values[0]:
      raise errors.MachinesDiffer(
          f"Machine {rank} computed a different update than machine 0 from the "
          "same steps, because its processor or its libraries differ. Train on "
          "machines of one kind.")
