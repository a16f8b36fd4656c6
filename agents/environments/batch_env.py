"""Many environments as one, with a batch dimension."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from agents.environments import block as block_lib
from agents.environments import episodes
from agents.environments import group as group_lib
from agents.environments import incidents as incidents_lib
from agents.environments import layout
from agents.environments import memory
from agents.environments import mujoco_log
from agents.environments import process as process_lib
from agents.environments import workers as workers_lib


class Step(NamedTuple):
  """One step of all B environments."""

  observ: np.ndarray  # [B, ...], to act on; a reset one where an episode ended.
  next_observ: np.ndarray  # [B, ...], the true successor, never a reset.
  reward: np.ndarray  # [B] float32
  terminated: np.ndarray  # [B] bool, no future reward exists.
  truncated: np.ndarray  # [B] bool, stopped although it could go on.
  valid: np.ndarray  # [B] bool, false where the row must not be learned from.


class BatchEnv:
  """Environments that start, step and end their episodes side by side.

  Every episode begins with a seed derived from (run seed, index, episode
  number), so nothing depends on how the environments share the workers. The
  actions of running episodes are kept; `restore` rebuilds a `snapshot` of them.

  In several groups, some environments can step while actions are chosen for
  others: `exchange` begins a step of one group and returns what came of the
  last step of the next one, so that groups take turns.

  Args:
    constructors: Functions without arguments that return environments whose
      spaces are alike.
    workers: Processes to step them in; None steps them in this process.
    seed: Run seed.
    groups: Into how many groups of equal size they are divided.
    incidents: How many episodes may be broken off because their environment
      failed in a step, or did not begin; by default as many as the workers
      have, without workers none. Such a step is not valid, and the next episode
      begins.
    block: Steps a group in this process, where there are no workers.
  """

  def __init__(self, constructors: Sequence[block_lib.Constructor],
               workers: workers_lib.Workers | None = None, seed: int = 0,
               groups: int = 1,
               incidents: incidents_lib.Incidents | None = None,
               block: Callable[..., Any] = block_lib.Block):
    if not constructors:
      raise ValueError("A batch needs at least one environment.")
    if groups < 1 or len(constructors) % groups:
      raise ValueError(f"{len(constructors)} environments can't be divided "
                       f"into {groups} groups of equal size.")
    self._name = str(constructors[0])
    self._size = len(constructors)
    mujoco_log.capture()
    probe = constructors[0]()
    try:
      self.observation_space = probe.observation_space
      self.action_space = probe.action_space
    finally:
      probe.close()
    layout.check_spaces(self.observation_space, self.action_space)
    self.groups = groups
    size = self._size // groups
    # Of one group.
    self.action_layout = layout.action_layout(size, self.action_space)
    self.step_layout = layout.step_layout(size, self.observation_space)
    self._log = episodes.EpisodeLog(seed, self._size)
    self._halfway = False
    # Of episodes that ended, in order of time; yours to empty.
    self.finished: list[episodes.Episode] = []
    self.final_observ: list[np.ndarray] = []  # Each [...].
    self.step_seconds = 0.0  # Time spent waiting for the environments.
    # What it would have been, had all workers been stepping all the time.
    self.least_seconds = 0.0
    # How many of them step at the same time.
    self.parallel = 1 if workers is None else min(len(workers), self._size)
    if workers is not None:
      incidents = workers.incidents  # Of all batches together.
    self.incidents = incidents or incidents_lib.Incidents()
    self._block = block
    self._turn = 0
    self._groups: list[group_lib.Group] = []
    try:
      for first in range(0, self._size, size):
        self._groups.append(self._group(
            list(constructors[first:first + size]), first, workers, seed))
    except BaseException:
      self.close()
      raise

  def _group(self, constructors: list[block_lib.Constructor], first: int,
             workers: workers_lib.Workers | None, seed: int) -> group_lib.Group:
    spaces = self.observation_space, self.action_space
    rows = slice(first, first + len(constructors))
    begin = self.action_layout.num_bytes
    end = begin + self.step_layout.num_bytes
    final = layout.final_layout(len(constructors), self.observation_space)
    descriptor = memory.create(end + final.num_bytes)
    try:
      buffer = memory.attach(os.dup(descriptor))
      arrays = layout.batch_views(buffer, len(constructors), *spaces)
      group = group_lib.Group(
          self._name, rows, self._log, arrays, buffer[begin:end])
      if workers is None:
        group.block = self._block(
            constructors, first, spaces, arrays, seed, self.incidents.most > 0)
      else:
        group.block = workers.open(
            constructors, first, spaces, descriptor, seed, group)
      return group
    finally:
      os.close(descriptor)

  def __len__(self) -> int:
    return self._size

  def reset(self, seeds: Sequence[int] | None = None) -> np.ndarray:
    """Begin episode 0 of every environment.

    Args:
      seeds: One for each of these episodes; derived from the run seed by
        default, as those of all later episodes are.
    Returns:
      Observations of shape [B, ...].
    """
    if seeds is not None and len(seeds) != self._size:
      raise ValueError(f"`seeds` must hold {self._size} numbers, one for each "
                       f"environment. Received: {len(seeds)}.")
    self._abandon_step()
    self.final_observ.clear()
    seeds = self._log.begin(seeds)
    for group in self._opened:
      group.observ = None  # Of the episodes that begin now.
    for group in self._opened:
      with self._witnessed(group):
        group.block.reset(seeds[group.rows])
      group.observ = group.arrays["observ"].copy()
    self._halfway = False
    return self._observ()

  def step(self, action: np.ndarray, active: np.ndarray | None = None) -> Step:
    """Step the environments, and begin a new episode where one ended.

    Args:
      action: Array of shape [B, ...]; floats in [-1, 1] or integers from 0.
      active: Bool array of shape [B], by default all true. The others wait,
        which they can only before the first step of an episode.
    """
    active = np.ones(self._size, bool) if active is None else active
    shape = self.action_layout.fields[0].shape[1:]
    for name, array, expected in (("action", action, (self._size, *shape)),
                                  ("active", active, (self._size,))):
      if np.shape(array) != expected:
        raise ValueError(f"`{name}` must have shape {expected}. "
                         f"Received: {np.shape(array)}.")
    if self._in_turns:
      raise RuntimeError("Some environments are ahead of others; only "
                         "`exchange` can go on from here.")
    if self._log.begun:
      for group in self._opened:  # Before any of them begins its step.
        self._check(group, active[group.rows])
    answers = [self.exchange(action[group.rows], active[group.rows])
               for group in self._opened]
    answers = [*answers[self.groups - 1:], *self.drain()]
    views = [self.step_layout.views(packed) for packed in answers]
    fields = {name: np.concatenate([view[name] for view in views])
              for name in views[0]}
    next_observ = fields["observ"].copy()
    for group in self._groups:
      ended = group.arrays["terminated"] | group.arrays["truncated"]
      next_observ[group.rows][ended] = group.arrays["final_observ"][ended]
    return Step(next_observ=next_observ, **fields)

  def exchange(self, action: np.ndarray, active: np.ndarray | None = None
               ) -> np.ndarray:
    """Begin a step of the group whose turn it is, and end one of the next.

    That is the same step if there is one group. Of a group that has not begun a
    step, only the observations are of any use.

    Args:
      action: Array of shape [N, ...] for a group of N; see `step`.
      active: Bool array of shape [N].
    Returns:
      Bytes of `step_layout`, a new array. True successors are the
      observations, and `final_observ` where an episode ended.
    """
    groups = self._opened
    group, following = groups[self._turn], groups[
        (self._turn + 1) % len(groups)]
    expected = group.arrays["action"]
    action = np.asarray(action, expected.dtype)
    if action.shape != expected.shape:
      raise ValueError(f"`action` must have shape {expected.shape}. "
                       f"Received: {action.shape}.")
    if not self._log.begun:
      raise RuntimeError("Call reset() before step().")
    if active is not None:
      self._check(group, active)
    try:
      expected[...] = action
      group.arrays["active"][...] = True if active is None else active
      group.stepping = True
      group.block.step_async()
      self._turn = (self._turn + 1) % len(groups)
      return self._receive(following)
    except BaseException:
      self._abandon_step()
      self._halfway = True  # Some environments have gone on, others haven't.
      raise

  def drain(self) -> list[np.ndarray]:
    """End the steps of all groups that are stepping, in order of their turns.

    Returns:
      For each, what `exchange` would have returned.
    """
    try:
      return [self._receive(group) for group in self._in_flight]
    except BaseException:
      self._abandon_step()
      self._halfway = True
      raise

  def _receive(self, group: group_lib.Group) -> np.ndarray:
    """Wait until a group has stepped, and return its answers."""
    if not group.stepping:
      return group.answers.copy()
    start = time.perf_counter()
    group.stepping = False
    with self._witnessed(group, stepping=True):
      reports = group.block.step_wait()
    self.step_seconds += time.perf_counter() - start
    arrays = group.arrays
    self.least_seconds += float(arrays["seconds"].sum()) / self.parallel
    ended = arrays["terminated"] | arrays["truncated"]
    if reports:
      ended |= arrays["active"] & ~arrays["valid"]  # Broken off.
    for index, episode in self._log.append(
        group.rows.start, arrays["action"], arrays["active"], arrays["reward"],
        ended).items():
      outcome, skipped = reports[index]
      if isinstance(outcome, str):
        self._survive(outcome, index, episode.seed, episode.action)
      else:
        self.finished.append(dataclasses.replace(episode, info=outcome))
        self.final_observ.append(
            arrays["final_observ"][index - group.rows.start].copy())
      for text in skipped:
        self._survive(text, index, self._log.skip(index), episode.action[:0])
    group.observ = arrays["observ"].copy()
    return group.answers.copy()

  def _survive(self, text: str, index: int, seed: int, action: np.ndarray):
    """Take notice of an episode that broke off.

    Raises:
      EnvironmentFailure: If there were too many.
    """
    if not self.incidents.survive(incidents_lib.Incident(
        text, (incidents_lib.Broken(index, seed, action),))):
      raise block_lib.EnvironmentFailure(text)

  @contextlib.contextmanager
  def _witnessed(self, group: group_lib.Group, stepping: bool = False):
    """Keep the episode of an environment that fails."""
    try:
      yield
    except Exception as error:
      for failure in (error, error.__cause__):
        if isinstance(failure, block_lib.EnvironmentFailure):
          self.incidents.fatal = group.incident(failure, stepping)
      raise

  @property
  def _in_flight(self) -> list[group_lib.Group]:
    """Groups that are stepping, in the order in which they began."""
    groups = [*self._groups[self._turn:], *self._groups[:self._turn]]
    return [group for group in groups if group.stepping]

  @property
  def _in_turns(self) -> bool:
    """Whether some groups have begun a step that others haven't ended."""
    return bool(self._turn or self._in_flight)

  def _abandon_step(self, seconds: float | None = None):
    """Wait for what is still stepping, whatever comes of it."""
    for group in self._in_flight:
      group.stepping = False
      group.block.step_discard(seconds)
    self._turn = 0

  def _check(self, group: group_lib.Group, active: np.ndarray):
    """Raise ValueError for a wrong choice of whom to step, [N]."""
    shape = group.arrays["active"].shape
    if np.shape(active) != shape:
      raise ValueError(f"`active` must have shape {shape}. "
                       f"Received: {np.shape(active)}.")
    running = self._log.running
    inside = ~np.asarray(active, bool) & (
        running.first[group.rows] < len(running.actions))
    if inside.any():
      index = group.rows.start + int(np.flatnonzero(inside)[0])
      raise ValueError(f"Environment {index} can't wait in the middle of an "
                       "episode, only before its first step.")

  def snapshot(self) -> episodes.Running:
    """Return seeds and actions of the running episodes.

    Raises:
      RuntimeError: If a step has failed or is under way, so that some
        environments have gone on and others haven't.
    """
    if self._halfway or self._in_turns:
      raise RuntimeError("There is no snapshot of half a step.")
    return self._log.snapshot(self._observ())

  def restore(self, running: episodes.Running):
    """Rebuild running episodes by replaying them.

    Where nothing repeats, as in EnvPool, the episodes behind them begin.

    Raises:
      ReplayError: If the last observations are not the same bits as before.
    """
    if len(running.seed) != self._size:
      raise ValueError(f"The episodes are of {len(running.seed)} "
                       f"environments, the batch has {self._size}.")
    self._abandon_step()
    self.final_observ.clear()
    # All at once: a worker that dies meanwhile is brought to the same.
    self._halfway = True
    self._log.load(running)
    if not all(group.block.repeats for group in self._opened):
      seeds = self._log.skip_all()
      for group in self._opened:
        group.block.reset(seeds[group.rows])
        group.observ = group.arrays["observ"].copy()
      self._halfway = False
      return
    for group in self._opened:
      group.observ = running.observ[group.rows]
    for group in self._opened:
      episodes_of_group = group.running()
      assert episodes_of_group is not None
      with self._witnessed(group):
        group.block.replay(*episodes_of_group)
        group.check(slice(0, self._size // self.groups))
    self._halfway = False

  def call(self, name: str, *args, **kwargs) -> list[Any]:
    """Call a method of every environment and return the results."""
    return sum((group.block.call(name, args, kwargs)
                for group in self._at_rest), [])

  def get(self, name: str) -> list[Any]:
    """Return an attribute of every environment."""
    return sum((group.block.get(name) for group in self._at_rest), [])

  def close(self):
    """Close every environment. Can be repeated."""
    self._abandon_step(process_lib.SECONDS_TO_CLOSE)
    groups, self._groups = self._groups, []
    with contextlib.ExitStack() as stack:
      for group in reversed(groups):
        stack.callback(group.block.close)

  def __enter__(self) -> BatchEnv:
    return self

  def __exit__(self, *_):
    self.close()

  def _observ(self) -> np.ndarray:
    """Return the latest observations, [B, ...]."""
    return np.concatenate([group.arrays["observ"] for group in self._opened])

  @property
  def _at_rest(self) -> list[group_lib.Group]:
    """All groups, none of which is stepping."""
    if self._in_flight:
      raise RuntimeError("Some environments are in the middle of a step.")
    return self._opened

  @property
  def _opened(self) -> list[group_lib.Group]:
    if not self._groups:
      raise RuntimeError("The environments are closed.")
    return self._groups
