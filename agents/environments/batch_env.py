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

from agents import spaces
from agents.environments import block as block_lib
from agents.environments import episodes
from agents.environments import group as group_lib
from agents.environments import incidents as incidents_lib
from agents.environments import layout
from agents.environments import members
from agents.environments import memory
from agents.environments import mujoco_log
from agents.environments import process as process_lib
from agents.environments import workers as workers_lib


class Step(NamedTuple):
  """One step of all B environments.

  Observations of Dict and Tuple spaces are arrays with a field for each part,
  such as `observ["camera"]` or `observ["0"]`, see `agents.spaces`.
  """

  observ: np.ndarray  # [B, ...], to act on; a reset one where an episode ended.
  next_observ: np.ndarray  # [B, ...], the true successor, never a reset.
  reward: np.ndarray  # [B] float32
  terminated: np.ndarray  # [B] bool, no future reward exists.
  truncated: np.ndarray  # [B] bool, stopped although it could go on.
  valid: np.ndarray  # [B] bool, false where the row must not be learned from.


class Rollout(NamedTuple):
  """T steps of all B environments; a row where it is not valid never happened.
  """

  observ: np.ndarray  # [T, B, ...], that the policy acted on.
  action: np.ndarray  # [T, B, ...], as it chose them.
  next_observ: np.ndarray  # [T, B, ...], the true successor, never a reset.
  reward: np.ndarray  # [T, B] float32
  terminated: np.ndarray  # [T, B] bool
  truncated: np.ndarray  # [T, B] bool
  valid: np.ndarray  # [T, B] bool


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
    infos: Whether to keep what each step and reset says in its info, as
      `infos` and `reset_infos`.
    lazy: Whether to build the environments when they are needed. One is built
      and closed at once in any case, for its spaces.
    block: Steps a group in this process, where there are no workers.
  """

  def __init__(self, constructors: Sequence[members.Constructor],
               workers: workers_lib.Workers | None = None, seed: int = 0,
               groups: int = 1,
               incidents: incidents_lib.Incidents | None = None,
               infos: bool = False, lazy: bool = False,
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
    spaces.check(self.observation_space, self.action_space)
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
    # Of each environment's latest step, also where that ended an episode, and
    # of the reset that began its running episode.
    self.infos: list[dict[str, Any]] = [{}] * self._size
    self.reset_infos = self.infos.copy()
    self.is_closed = False
    self._constructors = list(constructors)
    self._workers = workers
    # Of blocks: seed, whether to survive failures, whether to report infos.
    self._with_infos = infos
    self._options = seed, self.incidents.most > 0, infos
    self._groups: list[group_lib.Group] = []
    if not lazy:
      self._open()

  def _open(self):
    """Build all environments."""
    size = self._size // self.groups
    try:
      for first in range(0, self._size, size):
        self._groups.append(self._group(
            self._constructors[first:first + size], first))
    except BaseException:
      self.close()
      raise

  def _group(self, constructors: list[members.Constructor], first: int
             ) -> group_lib.Group:
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
      if self._workers is None:
        group.block = self._block(
            constructors, first, spaces, arrays, *self._options)
      else:
        group.block = self._workers.open(
            block_lib.Block, constructors, first, spaces, descriptor, group,
            *self._options)
      return group
    finally:
      os.close(descriptor)

  def __len__(self) -> int:
    return self._size

  def reset(self, seeds: Sequence[int] | None = None,
            indices: Sequence[int] | None = None) -> np.ndarray:
    """Begin episode 0 of every environment, or the next one of some.

    Args:
      seeds: One for each of these episodes; derived from the run seed by
        default, as those of all later episodes are.
      indices: Environments that break off their episodes and begin their next
        ones, while the others stay where they are.
    Returns:
      Observations of shape [B, ...].
    """
    amount = self._size if indices is None else len(indices)
    if seeds is not None and len(seeds) != amount:
      raise ValueError(f"`seeds` must hold {amount} numbers, one for each "
                       f"environment. Received: {len(seeds)}.")
    if indices is not None:
      return self._reset_some(indices, seeds)
    self._abandon_step()
    self.final_observ.clear()
    seeds = self._log.begin(seeds)
    for group in self._opened:
      group.observ = None  # Of the episodes that begin now.
    for group in self._opened:
      with self._witnessed(group):
        infos = group.block.reset(seeds[group.rows])
      group.observ = group.arrays["observ"].copy()
      self._note({index: ({}, info) for index, info in enumerate(
          infos, group.rows.start)})
    self._halfway = False
    return self._observ()

  def _reset_some(self, indices: Sequence[int], seeds: Sequence[int] | None
                  ) -> np.ndarray:
    self._chosen(indices)
    if self._halfway or self._in_turns or not self._log.begun:
      raise RuntimeError("Only where all environments have begun, and none is "
                         "ahead of others, can some of them be reset.")
    given = [self._log.next_seed(index) for index in indices
             ] if seeds is None else list(seeds)
    begun = dict(zip(indices, given, strict=True))
    self._halfway = True
    for group in self._opened:
      here = range(self._size)[group.rows]
      with self._witnessed(group):
        infos = group.block.begin_next([begun.get(index) for index in here])
      # Not before: a worker that dies meanwhile is first brought back to where
      # it was, and then asked again.
      for index in begun.keys() & here:
        self._log.break_off(index, begun[index])
      group.observ = group.arrays["observ"].copy()
      self._note({index: ({}, info) for index, info in zip(
          here, infos, strict=True) if index in begun})
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
    action = spaces.from_bytes(action, expected.dtype)
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
      outcome, skipped = reports[index][:2]
      if isinstance(outcome, str):
        self._survive(outcome, index, episode.seed, episode.action)
      else:
        self.finished.append(dataclasses.replace(episode, info=outcome))
        self.final_observ.append(
            arrays["final_observ"][index - group.rows.start].copy())
      for text in skipped:
        self._survive(text, index, self._log.skip(index), episode.action[:0])
    if self._with_infos:
      waited = block_lib.Report({})
      found = {index: reports.get(index, waited)
               for index in range(self._size)[group.rows]}
      self._note({index: (report.info or {}, report.reset_info)
                  for index, report in found.items()})
    group.observ = arrays["observ"].copy()
    return group.answers.copy()

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
    if not self.incidents.survive(incidents_lib.Incident(
        text, (incidents_lib.Broken(index, seed, action),))):
      raise members.EnvironmentFailure(text)

  @contextlib.contextmanager
  def _witnessed(self, group: group_lib.Group, stepping: bool = False):
    """Keep the episode of an environment that fails."""
    try:
      yield
    except Exception as error:
      for failure in (error, error.__cause__):
        if isinstance(failure, members.EnvironmentFailure):
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

  def restore(self, running: episodes.Running) -> bool:
    """Rebuild running episodes by replaying them.

    Returns:
      Whether they go on; where nothing repeats, as in EnvPool, the episodes
      behind them begin.
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
      return False
    for group in self._opened:
      group.observ = running.observ[group.rows]
    for group in self._opened:
      episodes_of_group = group.running()
      assert episodes_of_group is not None
      with self._witnessed(group):
        group.block.replay(*episodes_of_group)
        group.check(slice(0, self._size // self.groups))
    self._note({index: ({}, {}) for index in range(self._size)})
    self._halfway = False
    return True

  def rollout(self, policy: Callable[[np.ndarray], np.ndarray], steps: int
              ) -> Rollout:
    """Let a policy act for a while, from where the environments are.

    Args:
      policy: From observations of shape [B, ...] to actions of shape [B, ...].
      steps: Number of batched steps, T.
    """
    if steps < 1:
      raise ValueError(f"`steps` must be at least 1. Received: {steps}.")
    observ = self._observ() if self._log.begun else self.reset()
    dtype, taken = self.action_layout.fields[0].dtype, []
    for _ in range(steps):
      action = np.asarray(policy(observ), dtype)
      observed, step = observ, self.step(action)
      taken.append((observed, action.copy(), step.next_observ, step.reward,
                    step.terminated, step.truncated, step.valid))
      observ = step.observ
    return Rollout(*map(np.stack, zip(*taken, strict=True)))

  def call(self, name: str, /, *args, indices: Sequence[int] | None = None,
           **kwargs) -> list[Any]:
    """Call a method of all environments, or of some, and return the results.

    Args:
      name: Of the method; it is looked for in wrappers, too.
      args: Of the method.
      indices: Whose method, in which order; all by default.
      kwargs: Of the method. (One named `indices` it can only get through
        `args`.)
    """
    return self._ask(indices, lambda block, chosen: block.call(
        name, args, kwargs, chosen))

  def get(self, name: str, indices: Sequence[int] | None = None) -> list[Any]:
    """Return an attribute of all environments, or of some."""
    return self._ask(indices, lambda block, chosen: block.get(name, chosen))

  def set(self, name: str, values: Sequence[Any],
          indices: Sequence[int] | None = None):
    """Set an attribute of all environments, or of some.

    It is gone when an environment is built anew, because it failed or its
    worker died. What has to last belongs into the constructor.

    Args:
      name: Of the attribute.
      values: One for each of the environments.
      indices: Which environments; all by default.
    """
    indices = range(self._size) if indices is None else indices
    if len(values) != len(indices):
      raise ValueError(f"`values` must hold {len(indices)}, one for each "
                       f"environment. Received: {len(values)}.")
    chosen, new = self._chosen(indices), dict(zip(indices, values, strict=True))
    for group in self._at_rest:
      group.block.set(name, [new.get(index) for index in range(
          self._size)[group.rows]], chosen[group.rows])

  def _ask(self, indices: Sequence[int] | None, ask: Callable[..., list[Any]]
           ) -> list[Any]:
    """Return what the chosen ones of each block answer, in order of indices."""
    indices = range(self._size) if indices is None else indices
    chosen = self._chosen(indices)
    answers = sum((ask(group.block, chosen[group.rows])
                   for group in self._at_rest), [])
    found = dict(zip(np.flatnonzero(chosen).tolist(), answers, strict=True))
    return [found[index] for index in indices]

  def _chosen(self, indices: Sequence[int]) -> list[bool]:
    """Return for each environment whether it is among the indices.

    Raises:
      ValueError: If there is no such environment, or it is named twice.
    """
    if not set(indices) <= set(range(self._size)) or (
        len(set(indices)) < len(indices)):
      raise ValueError(f"`indices` must be different ones of 0 to "
                       f"{self._size - 1}. Received: {list(indices)}.")
    return [index in set(indices) for index in range(self._size)]

  def close(self):
    """Close every environment. Can be repeated."""
    self.is_closed = True
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
    if self.is_closed:
      raise RuntimeError("The environments are closed.")
    if not self._groups:
      self._open()
    return self._groups
