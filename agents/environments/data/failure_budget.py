"""Records failures of environments and workers, and limits their number."""

import time
from typing import NamedTuple

import numpy as np

WINDOW = 600.0  # Seconds for which a failure counts against the limit.


class FailedEpisode(NamedTuple):
  """An episode in which an environment or its worker failed."""

  environment: int  # Index within its batch.
  seed: int
  action: np.ndarray  # [L, ...], sent by the agent until the failure.


class Failure(NamedTuple):
  """The failure of an environment, or of a worker with all its environments."""

  text: str  # Message with the cause and the place.
  episodes: tuple[FailedEpisode, ...] = ()  # Running episodes, if known.

  @property
  def summary(self) -> str:
    """First line of the text, and the last line of the traceback, if any."""
    lines = self.text.strip().splitlines()
    traceback = any(line.startswith("Traceback") for line in lines)
    first = lines[0].removesuffix(" It was here:")
    return f"{first} {lines[-1]}" if traceback else first


class FailureBudget:
  """Counts failures and decides whether the run continues.

  Args:
    limit: Number of failures tolerated within WINDOW seconds.

  The attribute `fatal` contains the failure that ended the run, or None.
  """

  def __init__(self, limit: int = 0) -> None:
    self.limit = limit
    self.fatal: Failure | None = None
    self._times: list[float] = []
    self._num_consequences = 0  # Of failures that were counted.
    self._recorded: list[Failure] = []

  def record(self, failure: Failure) -> bool:
    """Records a failure.

    Args:
      failure: The failure.

    Returns:
      Whether the run continues; false if the limit is exceeded.
    """
    if self._num_consequences:
      self._num_consequences -= 1
      self._recorded.append(failure)
      return True
    now = time.monotonic()
    self._times = [failed_at for failed_at in self._times if failed_at >= now - WINDOW]
    if len(self._times) >= self.limit:
      self.fatal = failure
      return False
    self._times.append(now)
    self._recorded.append(failure)
    return True

  def expect(self, num_failures: int) -> None:
    """Makes failures with one cause count as one failure.

    Args:
      num_failures: Number of the next failures that have this cause.
    """
    self._num_consequences = max(0, num_failures - 1)

  def merge(self, failures: list[Failure]) -> None:
    """Adds failures to the result of the next `drain`, without counting them.

    Args:
      failures: Failures that do not count against the limit, or that another
        machine has counted.
    """
    self._recorded += failures

  def drain(self) -> list[Failure]:
    """Returns the tolerated failures since the previous call."""
    recorded, self._recorded = self._recorded, []
    return recorded
