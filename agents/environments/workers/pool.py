"""The trainer's end of its worker processes."""

from __future__ import annotations

import collections
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import gymnasium
import numpy as np

from agents import errors
from agents.environments.blocks import base
from agents.environments.data import failure_budget as failure_budget_lib
from agents.environments.data import mujoco_warnings, replay_source
from agents.environments.making import gym_registry
from agents.environments.workers import affinity, process, protocol, replacement

_SECONDS_TO_CHECK = 1.0


class Interrupted(errors.EnvironmentsError):
  """The user stops the run and the environments take too long to answer."""


def num_cores() -> int:
  """Returns the number of CPU cores that this process may use."""
  if hasattr(os, "sched_getaffinity"):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def split_evenly(size: int, num_workers: int) -> list[slice]:
  """Splits the environments of a batch over the workers.

  Args:
    size: Number of environments.
    num_workers: Number of workers.

  Returns:
    Rows of each worker.
  """
  bounds = [number * size // num_workers for number in range(num_workers + 1)]
  return list(map(slice, bounds[:-1], bounds[1:]))


class WorkerPool:
  """Worker processes, each of which steps its share of every open batch.

  Args:
    num_workers: Number of processes.
    interrupt_fd: Descriptor that becomes readable when waiting for the
      environments must end with Interrupted.
    variables: Environment variables of the processes, in addition to those of
      this process.
    failure_budget: Number of worker deaths to tolerate; none by default. A new
      process replays the episodes of a dead one, so that results stay equal.
    timeout: Limit in seconds for a batched step, the reset of an environment
      and a step of a replay; slower workers are killed. 0: no limit.
  """

  def __init__(self, num_workers: int, interrupt_fd: int | None = None,
               variables: dict[str, str] | None = None,
               failure_budget: failure_budget_lib.FailureBudget | None = None,
               timeout: float = 0.0):
    if num_workers < 1:
      raise ValueError(
          f"`num_workers` must be at least 1. Received: {num_workers}.")
    if sys.platform == "win32":
      raise errors.RunError(
          "Workers inherit file descriptors, which Windows does not support. "
          "Use WSL, or --no-env-processes.")
    self.failure_budget = failure_budget or failure_budget_lib.FailureBudget()
    self._timeout = timeout
    self._workers: list[process.WorkerProcess] = []
    self._numbers: set[int] = set()  # Numbers of all open blocks.
    self._open: dict[RemoteBlock, replay_source.ReplaySource | None] = {}
    self._requests: collections.deque[replacement.Request] = collections.deque()
    # Complete answers that another block's `wait` received.
    self._kept: dict[
        RemoteBlock, list[list[protocol.Answer]]] = {}
    self._failed = False
    try:
      for number in range(num_workers):
        self._workers.append(process.WorkerProcess(
            number, variables or {}, interrupt_fd,
            self._limit(replacement.SECONDS_TO_OPEN),
            affinity.core_for(number, num_workers)))
    except BaseException:
      self.close()
      raise

  def __len__(self) -> int:
    return len(self._workers)

  @property
  def pids(self) -> list[int]:
    """Process ids of the workers."""
    return [worker.process.pid for worker in self._workers]

  def open(self, block_class: type[base.BlockBase],
           constructors: Sequence[base.Constructor], first: int,
           spaces: tuple[gymnasium.Space, gymnasium.Space], descriptor: int,
           source: replay_source.ReplaySource | None, *options) -> RemoteBlock:
    """Builds environments on all workers, with an even share on each.

    Args:
      block_class: Class of the shares; its `layout` describes the fields of the
        shared memory.
      constructors: One function per environment.
      first: Index of the first environment within its batch.
      spaces: Observation and action space.
      descriptor: Shared memory of the size that the layout needs.
      source: Running episodes of the environments, for replays; None makes the
        death of a worker an error.
      options: Further arguments of the block class.

    Returns:
      The block.

    Raises:
      RuntimeError: If too many batches are open, or a worker has failed.
    """
    number = next((number for number in range(protocol.MAX_BLOCKS)
                   if number not in self._numbers), None)
    if number is None:
      raise RuntimeError(f"{protocol.MAX_BLOCKS} batches are open on these "
                         "workers, which is the maximum. Close some of them.")
    self._check_usable()
    size = len(constructors)
    shares = list(zip(
        self._workers, split_evenly(size, len(self._workers)), strict=True))
    pickled = {rows.start: cloudpickle.dumps(constructors[rows])
               for _, rows in shares}
    registrations = gym_registry.packed()
    def build(worker, rows):
      worker.request((block.number, "open", (
          block_class, size, rows.start, first, registrations,
          pickled[rows.start], spaces, options)), block.descriptor)
    block = RemoteBlock(
        self, number, shares, os.dup(descriptor), build)
    self._numbers.add(number)
    try:
      self.ask(block, build, replacement.SECONDS_TO_OPEN)
      self.wait(block)
    except Exception:
      with contextlib.suppress(Exception):
        block.close()  # Some workers have built their share.
      raise
    self._open[block] = source
    return block

  def expect(self, block: RemoteBlock, send: replacement.Send,
             min_seconds: float = 0.0):
    """Registers a request that the block sends to all its workers.

    Args:
      block: Block that sends the request.
      send: Repeats the request for a replaced worker.
      min_seconds: Minimum of the limit for an answer.

    Raises:
      RuntimeError: If the workers accept no requests.
    """
    self._check_usable()
    self._requests.append(replacement.Request(
        block, send, self._limit(min_seconds), list(block.shares)))

  def ask(self, block: RemoteBlock, send: replacement.Send,
          min_seconds: float = 0.0):
    """Sends a request to all workers of a block.

    Args:
      block: Block that sends the request.
      send: Sends the request to one worker, for its rows.
      min_seconds: Minimum of the limit for an answer.

    Raises:
      RuntimeError: If the workers accept no requests.
    """
    self.expect(block, send, min_seconds)
    try:
      for worker, rows in block.shares:
        send(worker, rows)
    except BaseException:
      self.mark_failed()
      raise

  def wait(self, block: RemoteBlock, seconds: float | None = None
           ) -> list[Any]:
    """Waits for the answers to a block's oldest request.

    Args:
      block: Block that sent the request.
      seconds: Maximum time to wait, without reacting to interrupts; None waits
        without limit.

    Returns:
      Result of each worker.

    Raises:
      Exception: Error of an environment; its cause names the environment.
      WorkerDied: If a process ended and the failure budget is used up.
      Interrupted: If `interrupt_fd` became readable.
      TimeoutError: If `seconds` have passed.
    """
    self._check_usable()
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
      while not self._kept.get(block):  # Workers answer in order of requests.
        request = self._requests[0]
        self._collect(request, deadline)
        self._kept.setdefault(request.block, []).append(request.answers)
        self._requests.popleft()
    except BaseException:
      self.mark_failed()
      raise
    answers = self._kept[block].pop(0)
    for answer in answers:
      for warning in answer.warnings:
        mujoco_warnings.warn(warning)
    failed = [answer for answer in answers if answer.error is not None]
    if failed:
      _raise_error(failed[0])
    return [answer.result for answer in answers]

  @property
  def usable(self) -> bool:
    """Whether the workers accept requests."""
    return bool(self._workers) and not self._failed

  def mark_failed(self):
    """Refuses further requests, because a request was sent in part."""
    self._failed = True

  def forget(self, block: RemoteBlock):
    """Stops rebuilding a block in replaced workers.

    Args:
      block: Block that is being closed.
    """
    self._open.pop(block, None)

  def release(self, block: RemoteBlock):
    """Makes the number of a closed block available again.

    Args:
      block: Block that is closed.
    """
    self._kept.pop(block, None)
    self._numbers.discard(block.number)

  def close(self, patience: float = process.SECONDS_TO_CLOSE):
    """Asks every process to end, waits, and kills the rest. Can be repeated.

    Args:
      patience: Seconds for the environments to close.
    """
    workers, self._workers = self._workers, []
    for worker in workers:
      worker.disconnect()
    for seconds, kill in (patience, False), (5.0, True):
      deadline = time.monotonic() + seconds
      for worker in workers:
        if kill and worker.process.poll() is None:
          worker.end()
      for worker in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
          worker.process.wait(max(0.0, deadline - time.monotonic()))
    for worker in workers:
      worker.release()

  def __enter__(self) -> WorkerPool:
    return self

  def __exit__(self, *_):
    self.close()

  def _collect(self, request: replacement.Request, deadline: float | None):
    """Receives the missing answers to a request."""
    while request.waiting:
      try:
        request.answers.append(self._answer(
            [worker for worker, _ in request.waiting], request.seconds,
            deadline))
        del request.waiting[0]
      except process.WorkerDied as death:
        if deadline is not None:
          raise
        self._replace_worker(death)

  def _answer(self, workers: Sequence[process.WorkerProcess], seconds: float,
              deadline: float | None = None) -> protocol.Answer:
    """Waits for the answer of the first of several workers.

    Args:
      workers: All workers that still have to answer.
      seconds: Limit for an answer before the worker is killed; 0: none.
      deadline: Time at which to raise TimeoutError; None raises Interrupted on
        interrupts instead.
    """
    first = workers[0]
    descriptor = first.connection.fileno()
    while True:
      before = time.monotonic()
      ready = {ready for ready, _ in first.poll.poll(1000 * _SECONDS_TO_CHECK)}
      if descriptor in ready:
        if answer := first.receive():
          return answer
        ready.remove(descriptor)
      waited = time.monotonic() - before
      if waited > 2 * _SECONDS_TO_CHECK:  # Ctrl-Z has stopped all processes.
        for worker in workers:
          worker.since += waited
      if deadline is None and ready:
        raise Interrupted("Interrupted while environments were stepping.")
      if deadline is not None and time.monotonic() > deadline:
        raise TimeoutError("The workers did not answer in time.")
      if seconds and time.monotonic() > first.since + seconds:
        raise first.kill(seconds)
      # A child of an environment may hold a dead worker's connection open.
      for worker in workers:
        worker.check_alive()
      if ready:
        time.sleep(0.001)  # The interrupt stays readable.

  def _replace_worker(self, death: process.WorkerDied):
    # A new worker cannot repeat the answers in `_kept`, and it cannot rebuild a
    # block without a source.
    if any(self._kept.values()) or None in self._open.values():
      raise death
    replacement.replace_worker(
        self._workers[death.number], death, self._open, self._requests,
        self.failure_budget, self._receive_from)

  def _receive_from(self, worker: process.WorkerProcess,
                    min_seconds: float = 0.0):
    """Receives one answer; raises its error."""
    answer = self._answer([worker], self._limit(min_seconds))
    if answer.error is not None:
      _raise_error(answer)

  def _limit(self, min_seconds: float = 0.0) -> float:
    """Returns the limit in seconds for an answer; 0: none."""
    return self._timeout and max(min_seconds, self._timeout)

  def _check_usable(self):
    if not self._workers:
      raise RuntimeError("The workers are closed.")
    if self._failed:
      raise RuntimeError("A worker has died or did not answer; close the "
                         "workers and open new ones.")


class RemoteBlock:
  """Has the methods of a block and distributes them over several workers.

  Args:
    pool: The workers.
    number: Number of this block in the pool.
    shares: Worker and rows of each share.
    descriptor: Shared memory; closed with the block.
    build: Requests that a worker builds its share.
  """

  deterministic = True

  def __init__(self, pool: WorkerPool, number: int,
               shares: list[tuple[process.WorkerProcess, slice]],
               descriptor: int, build: replacement.Send):
    self._pool = pool
    self.number = number
    self.shares = [(worker, rows) for worker, rows in shares
                   if rows.start < rows.stop]
    self.descriptor = descriptor
    self.build = build
    self._wake_byte = bytes([number])

  def step(self) -> dict[int, Any]:
    """Steps all shares at the same time.

    Returns:
      The reports of all workers; see `GymnasiumBlock.step`.
    """
    self.step_async()
    return self.step_wait()

  def step_async(self):
    """Wakes the workers without waiting for their steps."""
    self._pool.expect(self, self.wake)
    try:
      for worker, _ in self.shares:
        worker.send(self._wake_byte)
    except BaseException:  # KeyboardInterrupt; some workers do not step.
      self._pool.mark_failed()
      raise

  def step_wait(self) -> dict[int, Any]:
    """Waits for the step that `step_async` began.

    Returns:
      The reports of all workers; see `GymnasiumBlock.step`.
    """
    reports: dict[int, Any] = {}
    for result in self._pool.wait(self):
      reports.update(result or {})
    return reports

  def wake(self, worker: process.WorkerProcess, rows: slice):
    """Wakes one worker for a step.

    Args:
      worker: Worker of a share.
      rows: Rows of the share.
    """
    worker.send(self._wake_byte)

  def reset(self, seeds: Sequence[Any]) -> list[Any]:
    """See `GymnasiumBlock.reset`."""
    return sum(self._request("reset", lambda rows: (seeds[rows],)), [])

  def begin_next(self, seeds: Sequence[int | None]) -> list[Any]:
    """See `GymnasiumBlock.begin_next`."""
    return sum(self._request("begin_next", lambda rows: (seeds[rows],)), [])

  def replay(self, episode: Sequence[int], seeds: Sequence[int],
             actions: Sequence[np.ndarray]):
    """See `GymnasiumBlock.replay`."""
    self._request("replay", lambda rows: (
        episode[rows], seeds[rows], actions[rows]))

  def call(self, name: str, args: tuple, kwargs: dict,
           selected: Sequence[bool]) -> list[Any]:
    """See `BlockBase.call`."""
    return sum(self._request("call", lambda rows: (
        name, args, kwargs, selected[rows])), [])

  def get(self, name: str, selected: Sequence[bool]) -> list[Any]:
    """See `BlockBase.get`."""
    return sum(self._request("get", lambda rows: (name, selected[rows])), [])

  def set(self, name: str, values: Sequence[Any], selected: Sequence[bool]):
    """See `BlockBase.set`."""
    self._request("set", lambda rows: (name, values[rows], selected[rows]))

  def close(self):
    """Closes the environments; ends the workers if they do not answer."""
    self._pool.forget(self)
    if self.descriptor >= 0:
      os.close(self.descriptor)
      self.descriptor = -1
    with contextlib.suppress(TimeoutError, process.WorkerDied):
      if self._pool.usable:
        self._ask("close", lambda _: ())
        try:
          self._pool.wait(self, process.SECONDS_TO_CLOSE)
        finally:
          self._pool.release(self)
        return
    self._pool.close()

  def _request(self, name: str, arguments: Callable[[slice], tuple]
               ) -> list[Any]:
    self._ask(name, arguments)
    return self._pool.wait(self)

  def _ask(self, name: str, arguments: Callable[[slice], tuple]):
    # Pickles all requests before it sends the first, so that an argument that
    # cannot be pickled leaves the workers usable.
    pickled = {rows.start: cloudpickle.dumps((
        self.number, name, arguments(rows))) for _, rows in self.shares}
    self._pool.ask(self, lambda worker, rows: worker.request(
        pickled[rows.start]))


def _raise_error(answer: protocol.Answer):
  """Raises the error of an answer, with the failure as its cause."""
  assert answer.error is not None
  if isinstance(answer.error, base.EnvironmentFailure):
    raise answer.failure or answer.error
  raise answer.error from answer.failure
