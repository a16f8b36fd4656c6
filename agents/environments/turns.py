"""The groups of a batch begin and end their steps in turns."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from agents import spaces
from agents.environments import group as group_lib
from agents.environments.data import episode_log
from agents.environments.data import episode_statistics
from agents.environments.data import episodes
from agents.environments.workers import process


class Turns:
  """Groups of which one can step while actions are chosen for another.

  Args:
    log: Of the episodes of the batch.
    outcomes: Where to note what comes of steps and resets.
  """

  def __init__(self, log: episode_log.EpisodeLog,
               outcomes: episode_statistics.Outcomes):
    self.groups: list[group_lib.Group] = []  # Of equal size; to be appended.
    self._log = log
    self._outcomes = outcomes
    self._turn = 0
    self._halfway = False  # Some environments have gone on, others haven't.

  def exchange(self, action: np.ndarray, active: np.ndarray | None = None
               ) -> np.ndarray:
    """Begin a step of the group whose turn it is, and end one of the next.

    See `BatchEnv.exchange`.
    """
    groups = self.groups
    group, following = groups[self._turn], groups[
        (self._turn + 1) % len(groups)]
    expected = group.arrays["action"]
    action = spaces.from_bytes(action, expected.dtype)
    if action.shape != expected.shape:
      raise ValueError(f"`action` must have shape {expected.shape}. "
                       f"Received: {action.shape}.")
    if not self._log.begun:
      raise RuntimeError("Call reset() before step().")
    if active is not None:
      group.check_active(active)
    try:
      expected[...] = action
      group.arrays["active"][...] = True if active is None else active
      group.stepping = True
      group.block.step_async()
      self._turn = (self._turn + 1) % len(groups)
      return self._receive(following)
    except BaseException:
      self._abandon_step()
      self._halfway = True
      raise

  def drain(self) -> list[np.ndarray]:
    """End the steps of all groups that are stepping, in order of their turns.
    """
    try:
      return [self._receive(group) for group in self._in_flight]
    except BaseException:
      self._abandon_step()
      self._halfway = True
      raise

  def _receive(self, group: group_lib.Group) -> np.ndarray:
    """Wait until a group has stepped, and return its answers."""
    if group.stepping:
      start = time.perf_counter()
      group.stepping = False
      with self._outcomes.witnessed(group, stepping=True):
        reports = group.block.step_wait()
      self._outcomes.step(group, reports, time.perf_counter() - start)
      group.observ = group.arrays["observ"].copy()
    return group.answers.copy()

  def reset(self, seeds: Sequence[int] | None) -> np.ndarray:
    """Begin episode 0 of every environment, whatever is stepping.

    Args:
      seeds: One for each of these episodes; derived from the run seed if None.
    Returns:
      Observations of shape [B, ...].
    """
    self._abandon_step()
    self._outcomes.final_observ.clear()
    seeds = self._log.begin(seeds)
    for group in self.groups:
      group.observ = None  # Of the episodes that begin now.
    for group in self.groups:
      with self._outcomes.witnessed(group):
        infos = group.block.reset(seeds[group.rows])
      group.observ = group.arrays["observ"].copy()
      self._outcomes.begin(dict(enumerate(infos, group.rows.start)))
    self._halfway = False
    return self.observ

  def begin_next(self, seeds: Mapping[int, int]) -> np.ndarray:
    """Break off episodes and begin the next ones.

    Args:
      seeds: Of these, by index; the other environments stay where they are.
    Returns:
      Observations of shape [B, ...].
    """
    self._halfway = True
    for group in self.groups:
      here = range(group.rows.start, group.rows.stop)
      with self._outcomes.witnessed(group):
        infos = group.block.begin_next([seeds.get(index) for index in here])
      # Not before: a worker that dies meanwhile is first brought back to where
      # it was, and then asked again.
      for index in seeds.keys() & here:
        self._log.break_off(index, seeds[index])
      group.observ = group.arrays["observ"].copy()
      self._outcomes.begin({index: info for index, info in zip(
          here, infos, strict=True) if index in seeds})
    self._halfway = False
    return self.observ

  def restore(self, running: episodes.EpisodeState) -> bool:
    """Rebuild running episodes, whatever is stepping; see `BatchEnv.restore`.
    """
    self._abandon_step()
    self._outcomes.final_observ.clear()
    # All at once: a worker that dies meanwhile is brought to the same.
    self._halfway = True
    self._log.load(running)
    if not all(group.block.repeats for group in self.groups):
      seeds = self._log.skip_all()
      for group in self.groups:
        group.block.reset(seeds[group.rows])
        group.observ = group.arrays["observ"].copy()
      self._halfway = False
      return False
    for group in self.groups:
      group.observ = running.observ[group.rows]
    for group in self.groups:
      episodes_of_group = group.running()
      assert episodes_of_group is not None
      with self._outcomes.witnessed(group):
        group.block.replay(*episodes_of_group)
        group.check(slice(0, group.rows.stop - group.rows.start))
    self._outcomes.forget_infos()
    self._halfway = False
    return True

  def close(self):
    """Close all groups. Can be repeated."""
    self._abandon_step(process.SECONDS_TO_CLOSE)
    groups, self.groups = self.groups, []
    with contextlib.ExitStack() as stack:
      for group in reversed(groups):
        stack.callback(group.block.close)

  @property
  def ahead(self) -> bool:
    """Whether some groups have begun a step that others haven't ended."""
    return bool(self._turn or self._in_flight)

  @property
  def even(self) -> bool:
    """Whether all environments have gone equally far, and none is stepping."""
    return not (self._halfway or self.ahead)

  @property
  def at_rest(self) -> list[group_lib.Group]:
    """All groups, none of which is stepping."""
    if self._in_flight:
      raise RuntimeError("Some environments are in the middle of a step.")
    return self.groups

  @property
  def observ(self) -> np.ndarray:
    """The latest observations, [B, ...]."""
    return np.concatenate([group.arrays["observ"] for group in self.groups])

  @property
  def _in_flight(self) -> list[group_lib.Group]:
    """Groups that are stepping, in the order in which they began."""
    groups = [*self.groups[self._turn:], *self.groups[:self._turn]]
    return [group for group in groups if group.stepping]

  def _abandon_step(self, seconds: float | None = None):
    """Wait for what is still stepping, whatever comes of it."""
    for group in self._in_flight:
      group.stepping = False
      group.block.step_discard(seconds)
    self._turn = 0
