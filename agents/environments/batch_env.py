"""Many environments as one environment with a batch dimension."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents import spaces
from agents.environments.blocks import base, gymnasium_block, mujoco_block
from agents.environments.data import (
  action_log,
  buffer_layout,
  episode_data,
  mujoco_warnings,
  played_steps,
  replay_source,
)
from agents.environments.data import failure_budget as failure_budget_lib
from agents.environments.making import action_scaling
from agents.environments.workers import pool, shared_memory


class StepResult(NamedTuple):
  """One step of all B environments.

  Observations of Dict and Tuple spaces are arrays with a field for each part,
  such as `observ["camera"]` or `observ["0"]`; see `agents.spaces`.
  """

  # [B, ...], input of the next action: where an episode ended, the first
  # observation of the next episode, otherwise the same as `next_observ`.
  observ: np.ndarray
  next_observ: np.ndarray  # [B, ...], true successor, never from a reset.
  reward: np.ndarray  # [B] float32
  terminated: np.ndarray  # [B] bool, no future reward exists.
  truncated: np.ndarray  # [B] bool, cut off, such as by a time limit.
  valid: np.ndarray  # [B] bool, false where learning must ignore the row.


class Rollout(NamedTuple):
  """T steps of all B environments; learning must ignore invalid rows."""

  observ: np.ndarray  # [T, B, ...], input of the policy.
  action: np.ndarray  # [T, B, ...], output of the policy.
  next_observ: np.ndarray  # [T, B, ...], true successor, never from a reset.
  reward: np.ndarray  # [T, B] float32
  terminated: np.ndarray  # [T, B] bool
  truncated: np.ndarray  # [T, B] bool
  valid: np.ndarray  # [T, B] bool


class BatchEnv:
  """Steps environments side by side; each environment has its own episodes.

  Every episode begins with a seed derived from the run's seed, the index of the
  environment and the index of the episode. Results do not depend on the number
  of workers. The batch records the actions of running episodes, so that
  `restore` can rebuild these episodes from a `snapshot`.

  Args:
    constructors: Functions without arguments that return environments with
      equal spaces.
    workers: Processes that step the environments; None steps them in this
      process.
    seed: Seed of the run.
    failure_budget: Limits the failed steps and resets that are tolerated; by
      default, none is tolerated. A failed step is not valid, and a new
      environment begins the next episode. With workers, the budget of the
      workers replaces this argument.
    block_class: Class that steps the environments, in each worker or in this
      process; by default a block of Gymnasium environments.
    first: Index of the first environment within the batch of the whole run.
      Episode seeds depend on this index.

  Raises:
    TypeError: If a space is not supported; see `agents.spaces`.
    ValueError: If there is no environment, or if spaces differ.
  """

  def __init__(
    self,
    constructors: Sequence[base.Constructor],
    workers: pool.WorkerPool | None = None,
    seed: int = 0,
    failure_budget: failure_budget_lib.FailureBudget | None = None,
    block_class: Callable[..., Any] | None = None,
    first: int = 0,
  ) -> None:
    if not constructors:
      raise ValueError("A batch needs at least one environment.")
    mujoco_warnings.capture()
    with contextlib.closing(constructors[0]()) as probe:
      self.observation_space = probe.observation_space
      self.action_space = probe.action_space
      self._block_class: Any = block_class or (
        mujoco_block.MujocoBlock if mujoco_block.supports(probe) else gymnasium_block.GymnasiumBlock
      )
    # Whether the block itself lets environments wait.
    self._may_wait = getattr(self._block_class, "may_wait", False)
    size = len(constructors)
    self.step_layout = buffer_layout.step_layout(size, self.observation_space)
    self.action_layout = buffer_layout.action_layout(size, self.action_space)
    # Number of environments that step at the same time.
    self.parallel = 1 if workers is None else min(len(workers), size)
    self.failure_budget = failure_budget or failure_budget_lib.FailureBudget()
    if workers is not None:
      self.failure_budget = workers.failure_budget  # Shared by all batches.
    self.step_seconds = 0.0  # Seconds that this process waited for steps.
    self.first = first
    self.is_closed = False
    self._constructors = list(constructors)
    self._workers = workers
    self._seed = seed
    self._rng = np.random.default_rng(seed)  # Only for random actions.
    self._log = action_log.ActionLog(seed, size, first, self.failure_budget)
    self._busy_seconds = np.zeros(size)  # Sums of the field "seconds".
    # Reports of the latest step, by index of the environment in the run.
    self._reports: Mapping[int, base.StepReport] = {}
    # False after a failed step or reset, which may have changed only some
    # environments.
    self._consistent = True
    self._block: Any = None
    self._open()

  def __len__(self) -> int:
    return len(self._constructors)

  @property
  def busy_seconds(self) -> float:
    """Seconds that a worker has spent in steps, averaged over the workers."""
    return float(self._busy_seconds.sum()) / self.parallel

  @property
  def worker_pids(self) -> list[int]:
    """Process ids of the workers; empty if there are no workers."""
    return self._workers.pids if self._workers else []

  def take_finished(self) -> list[episode_data.Episode]:
    """Returns the episodes that ended since the previous call, in order."""
    return self._log.take_finished()

  def take_final_observ(self) -> list[np.ndarray]:
    """Returns the final observations of ended episodes since the previous call.

    Returns:
      One array of shape [...] per episode, in order of time.
    """
    return self._log.take_final_observ()

  def reset(
    self, seeds: Sequence[int] | None = None, indices: Sequence[int] | None = None
  ) -> np.ndarray:
    """Begins episode 0 of all environments, or the next episodes of some.

    Args:
      seeds: Seed of each new episode, by default derived from the run's seed.
        Seeds of later episodes are always derived from the run's seed.
      indices: Environments that abandon the running episode and begin the next
        one. By default, all environments begin episode 0.

    Returns:
      Latest observations of all environments, of shape [B, ...].

    Raises:
      ValueError: If the number of seeds or an index is wrong.
      RuntimeError: If `indices` is given after a failed step.
    """
    rows = self._checked_indices(indices)
    if seeds is not None and len(seeds) != len(rows):
      raise ValueError(
        f"`seeds` must contain {len(rows)} elements, one per environment. Received: {len(seeds)}."
      )
    self._check_open()
    seed_of: dict[int, int] = {}  # Seeds of next episodes, by index.
    if indices is None:
      self._log.take_final_observ()
      self._source.received = None
      begin = self._block.reset
      arguments: Sequence[int | None] = self._log.begin(seeds)
    elif self._consistent and self._log.begun:
      seed_of = dict(
        zip(rows, map(self._log.next_seed, rows) if seeds is None else seeds, strict=True)
      )
      begin = self._block.begin_next
      arguments = [seed_of.get(index) for index in range(len(self))]
    else:
      raise RuntimeError(
        "Call reset() of all environments first: the batch has not begun, or a step has failed."
      )
    self._consistent = False
    with self._recording_fatal():
      infos = begin(arguments)
    # The log changes after the request. If a worker dies during the request,
    # its replacement replays the recorded episodes and repeats the request.
    for index, seed in seed_of.items():
      self._log.begin_next(index, seed)
    self._record_resets({index: infos[index] for index in rows})
    return self._receive_observ()

  def step(self, action: np.ndarray, active: np.ndarray | None = None) -> StepResult:
    """Steps the active environments, and resets those whose episode ended.

    Args:
      action: Array of shape [B, ...]; floats in [-1, 1] or integers from 0.
      active: Bool array of shape [B], by default all true. An environment can
        be inactive only before the first step of its episode.

    Returns:
      New arrays with the results.

    Raises:
      ValueError: If a shape is wrong, or if an inactive environment has already
        stepped in its episode.
      RuntimeError: If `reset` was not called, or the batch is closed.
    """
    self.step_packed(action, active)
    arrays = self._arrays
    ended = arrays["terminated"] | arrays["truncated"]
    next_observ = arrays["observ"].copy()
    next_observ[ended] = arrays["final_observ"][ended]
    others = (arrays[name].copy() for name in StepResult._fields[2:])
    return StepResult(arrays["observ"].copy(), next_observ, *others)

  def step_packed(self, action: np.ndarray, active: np.ndarray | None = None) -> np.ndarray:
    """Steps the environments like `step`; returns the result as one array.

    Args:
      action: Array of shape [B, ...], or bytes of shape [B, bytes] for Dict
        and Tuple spaces.
      active: Bool array of shape [B].

    Returns:
      New read-only array of bytes with the fields of `step_layout`. Where an
      episode ended, "observ" is the first observation of the next episode, and
      `take_final_observ` returns the true successor.

    Raises:
      ValueError: See `step`.
      RuntimeError: See `step`.
    """
    self._check_open()
    if not self._log.begun:
      raise RuntimeError("Call reset() before step().")
    if active is not None:
      self._check_active(active)
    arrays = self._arrays
    action = np.asarray(action)
    expected = arrays["action"]
    if action.dtype != expected.dtype:
      action = spaces.from_bytes(action, expected.dtype)
    if action.shape != expected.shape:
      raise ValueError(f"`action` must have shape {expected.shape}. Received: {action.shape}.")
    expected[...] = action
    arrays["active"][...] = True if active is None else active
    self._consistent = False
    start = time.perf_counter()
    try:
      self._reports = self._block.step()
    except Exception as error:
      self._source.record_fatal(error, self.failure_budget, stepping=True)
      raise
    self.step_seconds += time.perf_counter() - start
    self._busy_seconds += arrays["seconds"]
    # Records only completed steps, because replays repeat all recorded steps.
    may_wait = active is not None or self._may_wait
    self._log.record_step(arrays, self._reports, may_wait)
    packed = self._result_bytes.copy()
    packed.setflags(write=False)  # Later compared with the result of a replay.
    self._source.received = packed
    self._consistent = True
    return packed

  def play(self, policy: base.Policy, episodes_left: np.ndarray, num_steps: int) -> np.ndarray:
    """Steps the environments with a policy that acts inside of the workers.

    Results are the same as with `step`. An environment that has played its
    episodes waits at the start of the next episode.

    Args:
      policy: Selects the actions.
      episodes_left: Number of episodes that each environment plays, [B].
      num_steps: Number of batched steps.

    Returns:
      Number of episodes that each environment has not played yet, [B].

    Raises:
      RuntimeError: See `step`.
    """
    self._check_open()
    self._check_active(episodes_left > 0)
    self._consistent = False
    with self._recording_fatal():
      shares = self._block.play(policy, episodes_left.tolist(), num_steps)
    arrays, reports = played_steps.join(shares)
    for step in np.flatnonzero(arrays["active"].any(1)).tolist():
      rows = {name: values[step] for name, values in arrays.items()}
      self._log.record_step(rows, reports.get(step, {}), may_wait=True)
    self._source.received = self._result_bytes.copy()
    self._consistent = True
    return episodes_left - episode_data.ended(arrays).sum(0)

  def snapshot(self) -> episode_data.EpisodeState:
    """Returns seeds and actions of the running episodes.

    Raises:
      RuntimeError: If the latest step or reset failed, because only some
        environments may have completed it.
    """
    self._check_open()
    if not self._consistent:
      raise RuntimeError("Cannot snapshot after a failed step or reset. Call reset() first.")
    return self._log.snapshot(self._arrays["observ"].copy())

  def restore(self, state: episode_data.EpisodeState) -> bool:
    """Rebuilds the running episodes of a snapshot by replaying their actions.

    An environment begins its next episode instead if the observation or the sum
    of rewards after the replay differs from the snapshot in any bit.
    `failure_budget.drain()` then describes these environments. Backends without
    replay, such as EnvPool, begin all next episodes.

    Args:
      state: Result of `snapshot`.

    Returns:
      Whether all episodes continue.

    Raises:
      ValueError: If the number of environments differs.
    """
    if len(state.seed) != len(self):
      raise ValueError(
        f"The snapshot is of {len(state.seed)} environments, but this batch has {len(self)}."
      )
    self._check_open()
    self._log.take_final_observ()
    self._consistent = False
    self._log.load(state)
    if not self._block.deterministic:
      for index in range(len(self)):
        self._log.begin_next(index)
      self._block.reset(self._log.state.seed.tolist())
      self._receive_observ()
      return False
    self._source.received = state.observ.tobytes()
    with self._recording_fatal():
      results = self._block.replay(*self._source.running())
    self._consistent = True
    if differing := self._source.differing(slice(0, len(self)), results):
      self.failure_budget.merge([self._source.failure(differing)])
      self.reset(indices=list(differing))
    return not differing

  def rollout(
    self, policy: Callable[[np.ndarray], np.ndarray] | None = None, num_steps: int = 1
  ) -> Rollout:
    """Steps the environments with a policy, from their current states.

    Args:
      policy: Maps observations of shape [B, ...] to actions of shape [B, ...].
        None samples random actions, which the seed of the run determines.
      num_steps: Number of batched steps, T.

    Returns:
      Arrays of shape [T, B, ...].

    Raises:
      ValueError: If `num_steps` is less than 1.
    """
    if num_steps < 1:
      raise ValueError(f"`num_steps` must be at least 1. Received: {num_steps}.")
    self._check_open()
    observ = self._arrays["observ"].copy() if self._log.begun else self.reset()
    dtype, steps = self.action_layout.fields[0].dtype, []
    for _ in range(num_steps):
      if policy:
        action = spaces.converted(policy(observ), dtype)
      else:
        action = action_scaling.sample(self.action_space, len(self), self._rng)
      step = self.step(action)
      steps.append((observ, action.copy(), *step[1:]))
      observ = step.observ
    return Rollout(*map(np.stack, zip(*steps, strict=True)))

  def call(
    self, name: str, /, *args: Any, indices: Sequence[int] | None = None, **kwargs: Any
  ) -> list[Any]:
    """Calls a method of all or of selected environments.

    Args:
      name: Name of a method of the environment or of one of its wrappers.
      args: Positional arguments of the method.
      indices: Selected environments; all by default.
      kwargs: Keyword arguments of the method. If the method has a parameter
        called `indices`, pass its value by position.

    Returns:
      Result of each selected environment, in the order of `indices`.

    Raises:
      ValueError: If an index is wrong.
    """
    return self._access("call", indices, name, args, kwargs)

  def get(self, name: str, indices: Sequence[int] | None = None) -> list[Any]:
    """Returns an attribute of all or of selected environments.

    Args:
      name: Name of the attribute.
      indices: Selected environments; all by default.

    Returns:
      Value of each selected environment, in the order of `indices`.

    Raises:
      ValueError: If an index is wrong.
    """
    return self._access("get", indices, name)

  def set(self, name: str, values: Sequence[Any], indices: Sequence[int] | None = None) -> None:
    """Sets an attribute of all or of selected environments.

    An environment loses the value if it is built again, after its own failure
    or the death of its worker. Permanent settings belong in the constructor.

    Args:
      name: Name of the attribute.
      values: Value for each selected environment, in the order of `indices`.
      indices: Selected environments; all by default.

    Raises:
      ValueError: If the number of values or an index is wrong.
    """
    indices = self._checked_indices(indices)
    if len(values) != len(indices):
      raise ValueError(
        f"`values` must contain {len(indices)} elements, one per "
        f"environment. Received: {len(values)}."
      )
    self._check_open()
    by_index = dict(zip(indices, values, strict=True))
    self._block.set(
      name,
      [by_index.get(index) for index in range(len(self))],
      [index in by_index for index in range(len(self))],
    )

  def close(self) -> None:
    """Closes every environment. Repeated calls have no effect."""
    if not self.is_closed:
      self.is_closed = True
      if self._block is not None:
        self._block.close()

  def __enter__(self) -> BatchEnv:
    return self

  def __exit__(self, *_: object) -> None:
    self.close()

  def _open(self) -> None:
    """Builds all environments."""
    self._begin_open()
    self._finish_open()

  def _begin_open(self) -> None:
    """Allocates the buffer; builds the environments or asks the workers."""
    both_spaces = self.observation_space, self.action_space
    layout = buffer_layout.batch_layout(len(self), *both_spaces)
    descriptor = shared_memory.create(layout.num_bytes)
    with contextlib.ExitStack() as stack:
      stack.callback(os.close, descriptor)
      buffer = shared_memory.attach(os.dup(descriptor))
      self._arrays = layout.views(buffer)
      self._result_bytes = buffer[self.action_layout.num_bytes :][: self.step_layout.num_bytes]
      self._source = replay_source.ReplaySource(str(self._constructors[0]), self._log, self._arrays)
      options = self._seed, self.failure_budget.limit > 0
      if self._workers is None:
        self._block = self._block_class(
          self._constructors, self.first, both_spaces, self._arrays, *options
        )
      else:
        self._block = self._workers.begin_open(
          self._block_class,
          self._constructors,
          self.first,
          both_spaces,
          descriptor,
          self._source,
          *options,
        )

  def _finish_open(self) -> None:
    """Waits until the workers have built the environments."""
    if self._workers is not None:
      self._workers.finish_open(self._block)

  def _record_resets(self, infos: dict[int, dict[str, Any]]) -> None:
    """Does nothing; `InfoBatchEnv` stores infos of resets outside of steps."""

  @contextlib.contextmanager
  def _recording_fatal(self) -> Iterator[None]:
    try:
      yield
    except Exception as error:
      self._source.record_fatal(error, self.failure_budget)
      raise

  def _receive_observ(self) -> np.ndarray:
    """Returns a copy of the observations; stores the bytes to check replays."""
    observ = self._arrays["observ"].copy()
    self._source.received = observ.tobytes()
    self._consistent = True
    return observ

  def _check_active(self, active: np.ndarray) -> None:
    size = len(self)
    if np.shape(active) != (size,):
      raise ValueError(f"`active` must have shape {(size,)}. Received: {np.shape(active)}.")
    inside = np.flatnonzero(~np.asarray(active, bool) & (self._log.length > 0))
    if len(inside):
      raise ValueError(
        f"Environment {self.first + inside[0]} cannot wait inside of an "
        "episode, only before its first step."
      )

  def _checked_indices(self, indices: Sequence[int] | None) -> Sequence[int]:
    if indices is None:
      return range(len(self))
    if len(set(indices) & set(range(len(self)))) < len(indices):
      raise ValueError(
        f"`indices` must be distinct numbers from 0 to {len(self) - 1}. Received: {list(indices)}."
      )
    return indices

  def _access(self, method: str, indices: Sequence[int] | None, *args: Any) -> list[Any]:
    """Returns the results of selected environments, in order of `indices`."""
    indices = self._checked_indices(indices)
    self._check_open()
    selected = [index in set(indices) for index in range(len(self))]
    results = dict(zip(sorted(indices), getattr(self._block, method)(*args, selected), strict=True))
    return [results[index] for index in indices]

  def _check_open(self) -> None:
    if self.is_closed:
      raise RuntimeError("The environments are closed.")
