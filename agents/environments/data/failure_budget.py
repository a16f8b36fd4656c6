"""Faults of environments and workers that a run survives, and how many."""

from __future__ import annotations

import collections
import time
from typing import NamedTuple

import numpy as np

WINDOW = 600.0  # Seconds in which incidents are counted.


class FailedEpisode(NamedTuple):
  """An episode in which something failed."""

  environment: int  # Its index within its batch.
  seed: int
  action: np.ndarray  # [L, ...], as the agent chose them; the last one failed.


class Failure(NamedTuple):
  """Something that failed: an environment, or a worker with all that it has."""

  text: str  # For people; says what and where.
  broken: tuple[FailedEpisode, ...] = ()  # One of them is to blame, if any is.

  @property
  def summary(self) -> str:
    """What failed and, where there is a traceback, the error that ends it."""
    lines = self.text.strip().splitlines()
    traceback = any(line.startswith("Traceback") for line in lines)
    first = lines[0].removesuffix(" It was here:")
    return f"{first} {lines[-1]}" if traceback else first


class FailureBudget:
  """Counts what fails.

  Args:
    most: That are survived within WINDOW seconds; one more is an error.

  The attribute `fatal` is what was not survived, if there is such.
  """

  def __init__(self, most: int = 0):
    self.most = most
    self.fatal: Failure | None = None
    self._times: collections.deque[float] = collections.deque()
    self._untold: list[Failure] = []

  def survive(self, incident: Failure) -> bool:
    """Take notice of an incident; return whether to go on."""
    now = time.monotonic()
    while self._times and self._times[0] < now - WINDOW:
      self._times.popleft()
    if len(self._times) >= self.most:
      self.fatal = incident
      return False
    self._times.append(now)
    self._untold.append(incident)
    return True

  def hear(self, incidents: list[Failure]):
    """Take notice of what was survived elsewhere, where it was counted."""
    self._untold += incidents

  def take(self) -> list[Failure]:
    """Return what was survived since this was asked for the last time."""
    taken, self._untold = self._untold, []
    return taken
