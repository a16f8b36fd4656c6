"""Those environments of a batch that step at the same time."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agents.environments.blocks import backend
from agents.environments.blocks import base
from agents.environments.blocks import gymnasium_block
from agents.environments.data import buffer_layout
from agents.environments.data import episode_log
from agents.environments.data import failure_budget
from agents.environments.workers import pool
from agents.environments.workers import remote_block
from agents.environments.workers import shared_memory


class ReplayError(base.EnvironmentFailure):
  """Replaying an episode's actions did not lead to its state again."""


@dataclasses.dataclass
class Group:
  """Environments that step at the same time."""

  name: str  # Of the environments.
  rows: slice  # Where they are within the batch.
  log: episode_log.EpisodeLog  # Of the batch.
  arrays: dict[str, np.ndarray]  # Fields of `layout.batch_views`.
  answers: np.ndarray  # Bytes of `layout.step_layout` among them.
  observ: np.ndarray | None = None  # [N, ...], the latest that were received.
  block: (gymnasium_block.Block | remote_block.RemoteBlock
          | backend.Backend) = dataclasses.field(init=False)
  stepping: bool = False  # Whether a step has begun whose end nobody has seen.

  def running(self) -> tuple[list[int], list[int], list[np.ndarray]] | None:
    """Return number, seed and actions of each running episode, if there are.
    """
    if not self.log.begun:
      return None
    numbers, seeds, actions = self.log.history(self.rows)
    nothing = self.arrays["action"][:0]
    return numbers, seeds, [
        taken if len(taken) else nothing for taken in actions]

  def episodes(self, here: slice, stepping: bool) -> list[failure_budget.FailedEpisode]:
    """Return running episodes.

    Args:
      here: Of which of these environments.
      stepping: Whether they were asked for a step and have not answered; its
        actions belong to the episodes, then.
    """
    if not (running := self.running()):
      return []
    _, seeds, actions = running
    found = []
    for offset in range(*here.indices(len(seeds))):
      action = actions[offset]
      if stepping and self.arrays["active"][offset]:
        action = np.concatenate([action, self.arrays["action"][offset][None]])
      found.append(failure_budget.FailedEpisode(
          self.rows.start + offset, seeds[offset], action))
    return found

  def incident(self, failure: base.EnvironmentFailure, stepping: bool
               ) -> failure_budget.Failure:
    """Return what an environment failed in, with its episode if it is here.

    Args:
      failure: Of one environment, of whichever group or batch.
      stepping: See `episodes`.
    """
    index, seed = failure.environment, failure.seed
    if index is None or seed is None or not (
        self.rows.start <= index < self.rows.stop):
      return failure_budget.Failure(str(failure))
    offset = index - self.rows.start
    found = self.episodes(slice(offset, offset + 1), stepping)
    # The step may have ended that one, and it failed to begin the next.
    broken = [one if one.seed == seed else failure_budget.FailedEpisode(
        index, seed, one.action[:0]) for one in found]
    return failure_budget.Failure(str(failure), tuple(broken))

  def check_active(self, active: np.ndarray):
    """Raise ValueError for a wrong choice of whom to step, [N]."""
    shape = self.arrays["active"].shape
    if np.shape(active) != shape:
      raise ValueError(f"`active` must have shape {shape}. "
                       f"Received: {np.shape(active)}.")
    running = self.log.running
    inside = ~np.asarray(active, bool) & (
        running.first[self.rows] < len(running.actions))
    if inside.any():
      index = self.rows.start + int(np.flatnonzero(inside)[0])
      raise ValueError(f"Environment {index} can't wait in the middle of an "
                       "episode, only before its first step.")

  def check(self, here: slice):
    """Raise ReplayError if a replay has not led to what was observed last.

    Args:
      here: Which of these environments.
    """
    if self.observ is None:
      return
    for offset in range(here.start, here.stop):
      observ, before = self.arrays["observ"][offset], self.observ[offset]
      if observ.tobytes() != before.tobytes():
        running = self.running()
        assert running is not None
        _, seeds, actions = running
        raise ReplayError(
            f"Environment {self.rows.start + offset} ('{self.name}') is not "
            f"deterministic: seed {seeds[offset]} and the same "
            f"{len(actions[offset])} actions led to another observation, so "
            "its episodes can't be continued in another process.",
            self.rows.start + offset, seeds[offset])


def open_group(name: str, constructors: Sequence[base.Constructor],
               first: int, spaces: tuple[gymnasium.Space, gymnasium.Space],
               log: episode_log.EpisodeLog, workers: pool.WorkerPool | None,
               block: Callable[..., Any], options: tuple[int, bool, bool]
               ) -> Group:
  """Build the environments of a group, and the memory for all it says.

  Args:
    name: Of the environments.
    constructors: Functions without arguments that return them.
    first: Index of the first one within the batch.
    spaces: Observation and action space.
    log: Of the episodes of the batch.
    workers: Processes to step them in; None steps them in this process.
    block: Steps them in this process.
    options: Of blocks: run seed, whether to survive failures, whether to
      report infos.
  """
  size = len(constructors)
  begin = buffer_layout.action_layout(size, spaces[1]).num_bytes
  end = begin + buffer_layout.step_layout(size, spaces[0]).num_bytes
  descriptor = shared_memory.create(buffer_layout.batch_bytes(size, *spaces))
  try:
    buffer = shared_memory.attach(os.dup(descriptor))
    arrays = buffer_layout.batch_views(buffer, size, *spaces)
    group = Group(
        name, slice(first, first + size), log, arrays, buffer[begin:end])
    if workers is None:
      group.block = block(constructors, first, spaces, arrays, *options)
    else:
      group.block = workers.open(
          gymnasium_block.Block, constructors, first, spaces, descriptor, group,
          *options)
    return group
  finally:
    os.close(descriptor)
