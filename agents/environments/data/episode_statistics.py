"""What comes of the steps and resets of a batch."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.environments import group as group_lib
from agents.environments.blocks import base
from agents.environments.blocks import gymnasium_block
from agents.environments.data import episode_log
from agents.environments.data import episodes
from agents.environments.data import failure_budget


class Outcomes:
  """Notes which episodes ended or failed, what infos said, and the time.

  Args:
    log: Of the episodes of the batch; every step is appended to it.
    incidents: How many episodes may be broken off.
    size: Number of environments, B.
    parallel: How many of them step at the same time.
    infos: Whether steps say something in their infos.
  """

  def __init__(self, log: episode_log.EpisodeLog,
               incidents: failure_budget.FailureBudget, size: int, parallel: int,
               infos: bool):
    self._log = log
    self._incidents = incidents
    self._size = size
    self._parallel = parallel
    self._with_infos = infos
    # Of episodes that ended, in order of time.
    self.finished: list[episodes.Episode] = []
    self.final_observ: list[np.ndarray] = []  # Each [...].
    self.step_seconds = 0.0  # Time spent waiting for the environments.
    # What it would have been, had all workers been stepping all the time.
    self.least_seconds = 0.0
    self.forget_infos()

  def step(self, group: group_lib.Group, reports: dict[int, gymnasium_block.Report],
           seconds: float):
    """Note what came of a step.

    Args:
      group: That has stepped; its arrays hold the answers.
      reports: By index in the batch.
      seconds: That were spent waiting for it.
    Raises:
      EnvironmentFailure: If too many episodes have broken off.
    """
    self.step_seconds += seconds
    arrays, first = group.arrays, group.rows.start
    self.least_seconds += float(arrays["seconds"].sum()) / self._parallel
    ended = arrays["terminated"] | arrays["truncated"]
    if reports:
      ended |= arrays["active"] & ~arrays["valid"]  # Broken off.
    for index, episode in self._log.append(
        first, arrays["action"], arrays["active"], arrays["reward"],
        ended).items():
      outcome, skipped = reports[index][:2]
      if isinstance(outcome, str):
        self._survive(outcome, index, episode.seed, episode.action)
      else:
        self.finished.append(dataclasses.replace(episode, info=outcome))
        self.final_observ.append(arrays["final_observ"][index - first].copy())
      for text in skipped:
        self._survive(text, index, self._log.skip(index), episode.action[:0])
    if self._with_infos:
      waited = gymnasium_block.Report({})
      found = {index: reports.get(index, waited)
               for index in range(first, group.rows.stop)}
      self._note({index: (report.info or {}, report.reset_info)
                  for index, report in found.items()})

  def begin(self, infos: Mapping[int, dict[str, Any]]):
    """Note what resets that no step stands behind say, by index."""
    self._note({index: ({}, info) for index, info in infos.items()})

  def forget_infos(self):
    """Begin without infos of steps and resets."""
    # Of each environment's latest step, also where that ended an episode, and
    # of the reset that began its running episode.
    self.infos: list[dict[str, Any]] = [{} for _ in range(self._size)]
    self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self._size)]

  def _note(self, said: dict[int, tuple[dict[str, Any], dict[str, Any] | None]]
            ):
    """Keep infos of a step, and of the reset behind it if there was one.

    The lists that somebody may have kept don't change.
    """
    self.infos = [
        said[index][0] if index in said else info
        for index, info in enumerate(self.infos)]
    self.reset_infos = [
        info if (begun := said.get(index, ({}, None))[1]) is None else begun
        for index, info in enumerate(self.reset_infos)]

  def _survive(self, text: str, index: int, seed: int, action: np.ndarray):
    """Take notice of an episode that broke off.

    Raises:
      EnvironmentFailure: If there were too many.
    """
    if not self._incidents.survive(failure_budget.Failure(
        text, (failure_budget.FailedEpisode(index, seed, action),))):
      raise base.EnvironmentFailure(text)

  @contextlib.contextmanager
  def witnessed(self, group: group_lib.Group, stepping: bool = False):
    """Keep the episode of an environment that fails."""
    try:
      yield
    except Exception as error:
      for failure in (error, error.__cause__):
        if isinstance(failure, base.EnvironmentFailure):
          self._incidents.fatal = group.incident(failure, stepping)
      raise
