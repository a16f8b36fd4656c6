"""Sends requests to worker processes and collects their answers."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import cloudpickle
import gymnasium

from agents import errors
from agents.environments.blocks import base
from agents.environments.data import failure_budget as failure_budget_lib
from agents.environments.data import mujoco_warnings, replay_source
from agents.environments.making import copied_registrations
from agents.environments.workers import (
  affinity,
  connection,
  descriptors,
  process,
  protocol,
  replacement,
)

_SECONDS_TO_CHECK = 1.0
_FAILED = "A worker has died or did not answer; close the workers and open new ones."


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
    failure_budget: Limits the failures of workers and of their environments; by
      default, none is tolerated. A new process replays the episodes of a dead
      one, so results do not change.
    timeout: Limit in seconds for a batched step, the reset of an environment
      and a step of a replay; slower workers are killed. 0 disables the limit.
  """

  def __init__(
    self,
    num_workers: int,
    interrupt_fd: int | None = None,
    variables: dict[str, str] | None = None,
    failure_budget: failure_budget_lib.FailureBudget | None = None,
    timeout: float = 0.0,
  ) -> None:
    if num_workers < 1:
      raise ValueError(f"`num_workers` must be at least 1. Received: {num_workers}.")
    if sys.platform == "win32":
      raise errors.RunError(
        "Workers inherit file descriptors, which Windows does not support. "
        "Use WSL, or --no-env-processes."
      )
    descriptors.raise_limit(num_workers)
    self.failure_budget = failure_budget or failure_budget_lib.FailureBudget()
    self._timeout = timeout
    self._workers: list[connection.WorkerConnection] = []
    self._open: dict[RemoteBlock, replay_source.ReplaySource | None] = {}
    # Requests without all answers, or with answers that `wait` did not return.
    self._requests: list[replacement.Request] = []
    self.refusal = ""  # Reason why the workers accept no requests, or "".
    try:
      for number in range(num_workers):
        self._workers.append(
          connection.WorkerConnection(
            number,
            variables or {},
            interrupt_fd,
            self._limit(replacement.SECONDS_TO_OPEN),
            affinity.core_for(number, num_workers),
          )
        )
    except BaseException:
      self.close()
      raise

  def __len__(self) -> int:
    return len(self._workers)

  @property
  def pids(self) -> list[int]:
    """Process ids of the workers."""
    return [worker.process.pid for worker in self._workers]

  def begin_open(
    self,
    block_class: type[base.BlockBase],
    constructors: Sequence[base.Constructor],
    first: int,
    spaces: tuple[gymnasium.Space, gymnasium.Space],
    descriptor: int,
    source: replay_source.ReplaySource | None,
    *options: Any,
  ) -> RemoteBlock:
    """Lets all workers build environments, with an even share on each.

    Args:
      block_class: Class of the shares; `layout` describes the shared memory.
      constructors: One function per environment.
      first: Index of the first environment within its batch.
      spaces: Observation and action space.
      descriptor: Shared memory of the size of the layout.
      source: Running episodes of the environments, for replays; None makes the
        death of a worker an error.
      options: Further arguments of the block class.

    Returns:
      The block, for `finish_open`.

    Raises:
      RuntimeError: If too many batches are open, or a worker has failed.
    """
    self._check_usable()
    free = set(range(protocol.MAX_BLOCKS)) - {block.number for block in self._open}
    if not free:
      raise RuntimeError(
        f"{protocol.MAX_BLOCKS} batches are open on these "
        "workers, which is the maximum. Close some of them."
      )
    number, size = min(free), len(constructors)
    shares = dict(zip(self._workers, split_evenly(size, min(size, len(self._workers)))))
    registrations = copied_registrations.packed()
    requests = {}
    for worker, rows in shares.items():
      pickled = cloudpickle.dumps(constructors[rows])
      args = block_class, size, rows, first, registrations, pickled, spaces, options
      requests[worker] = protocol.encode(protocol.REQUEST, (number, "open", args))
    block = RemoteBlock(self, number, shares, os.dup(descriptor), requests)
    self._open[block] = source
    self.ask(block, block.build, replacement.SECONDS_TO_OPEN)
    return block

  def finish_open(self, block: RemoteBlock) -> None:
    """Waits until all workers have built their environments of a block.

    Args:
      block: Result of `begin_open`. The block is closed after an error.

    Raises:
      Exception: See `wait`.
    """
    try:
      self.wait(next(x for x in self._requests if x.is_build and x.block is block))
    except Exception:
      with contextlib.suppress(Exception):
        block.close()  # Some workers have built their share.
      raise

  def ask(
    self, block: RemoteBlock, messages: replacement.Messages, min_seconds: float = 0.0
  ) -> replacement.Request:
    """Sends a request to all workers of a block.

    Args:
      block: Block that sends the request.
      messages: Arguments of `WorkerConnection.send` for each worker.
      min_seconds: Minimum of the limit for an answer.

    Returns:
      The request, for `wait`.

    Raises:
      RuntimeError: If the workers accept no requests.
    """
    self._check_usable()
    request = replacement.Request(block, messages, self._limit(min_seconds), list(messages), [])
    self.refusal = _FAILED  # Cleared after all workers received the request.
    self._requests.append(request)
    for worker, message in messages.items():
      worker.send(*message)
    self.refusal = ""
    return request

  def wait(self, request: replacement.Request, seconds: float | None = None) -> list[Any]:
    """Waits for the answers to a request.

    Args:
      request: Result of `ask`.
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
    self.refusal = _FAILED  # Cleared after all answers arrived.
    for earlier in self._requests:  # Workers answer in order of requests.
      self._collect(earlier, deadline)
      if earlier is request:
        break
    self.refusal = ""
    self._requests.remove(request)
    return [answer.unwrap() for answer in request.answers]

  def close_block(self, block: RemoteBlock) -> None:
    """Closes environments; ends the workers if they do not answer.

    Args:
      block: Block of the environments, which must not be used any more.
    """
    self._open.pop(block, None)
    with contextlib.suppress(TimeoutError, process.WorkerDied):
      if not self.refusal:
        self.wait(block.ask("close"), process.SECONDS_TO_CLOSE)
    if self.refusal:
      self.close()

  def close(self, patience: float = process.SECONDS_TO_CLOSE) -> None:
    """Asks every process to end, waits, and kills the remaining processes.

    Repeated calls have no effect.

    Args:
      patience: Seconds for the environments to close.
    """
    workers, self._workers = self._workers, []
    self.refusal = "The workers are closed."
    for worker in workers:
      worker.socket.close()  # The process then closes its environments.
    deadline = time.monotonic() + patience
    for worker in workers:
      with contextlib.suppress(subprocess.TimeoutExpired):
        worker.process.wait(max(0.0, deadline - time.monotonic()))
    for worker in workers:
      if worker.process.poll() is None:
        worker.process.kill()
      worker.process.release()

  def __enter__(self) -> WorkerPool:
    return self

  def __exit__(self, *_: object) -> None:
    self.close()

  def _collect(self, request: replacement.Request, deadline: float | None) -> None:
    """Receives the missing answers to a request."""
    while request.waiting:
      try:
        request.answers.append(self._answer(request.waiting, request.seconds, deadline))
        del request.waiting[0]
      except process.WorkerDied as death:
        if deadline is not None or not self._can_replace():
          raise
        self._replace(death)

  def _replace(self, death: process.WorkerDied) -> None:
    """Replaces a dead worker; see `replacement.replace_worker`."""
    replacement.replace_worker(
      self._workers[death.number],
      death,
      self._open,
      self._requests,
      self.failure_budget,
      lambda worker, min_seconds: self._answer([worker], self._limit(min_seconds)).unwrap(),
    )

  def _can_replace(self) -> bool:
    """Returns whether a new worker could continue the work of a dead one.

    A new worker cannot repeat answers that were not returned yet, except those
    to a build, and it cannot rebuild a used block without a source.
    """
    building = [request.block for request in self._requests if request.is_build]
    return all(source or block in building for block, source in self._open.items()) and not any(
      not request.waiting and not request.is_build and request.block in self._open
      for request in self._requests
    )

  def _answer(
    self, workers: list[connection.WorkerConnection], seconds: float, deadline: float | None = None
  ) -> protocol.Answer:
    """Waits for the answer of the first of several workers.

    Args:
      workers: All workers that still have to answer.
      seconds: Limit for an answer before the worker is killed; 0 disables it.
      deadline: Time at which to raise TimeoutError; None raises Interrupted on
        interrupts instead.
    """
    first = workers[0]
    while True:
      before = time.monotonic()
      ready = dict(first.poll.poll(1000 * _SECONDS_TO_CHECK))
      if ready.pop(first.socket.fileno(), None) and (answer := first.receive()):
        for warning in answer.warnings:
          mujoco_warnings.warn(warning)
        return answer
      waited = time.monotonic() - before
      self._check_late(workers, seconds, deadline, waited, is_interrupted=bool(ready))

  def _check_late(
    self,
    workers: list[connection.WorkerConnection],
    seconds: float,
    deadline: float | None,
    waited: float,
    is_interrupted: bool,
  ) -> None:
    """Checks whether to wait longer for an answer that has not arrived.

    Args:
      workers: See `_answer`.
      seconds: See `_answer`.
      deadline: See `_answer`.
      waited: Seconds since the previous check.
      is_interrupted: Whether `interrupt_fd` is readable.
    """
    if waited > 2 * _SECONDS_TO_CHECK:  # Ctrl-Z has stopped all processes.
      for worker in workers:
        worker.since += waited
    if deadline is None and is_interrupted:
      raise Interrupted("Interrupted while environments were stepping.")
    if deadline is not None and time.monotonic() > deadline:
      raise TimeoutError("The workers did not answer in time.")
    # A child of an environment may hold a dead worker's connection open.
    for worker in self._workers:
      if not worker.has_answered() and worker in workers:
        worker.check_alive(seconds)
    if is_interrupted:
      time.sleep(0.001)  # The next `poll` returns at once, too.

  def _limit(self, min_seconds: float = 0.0) -> float:
    """Returns the limit in seconds for an answer; 0 disables it."""
    return self._timeout and max(min_seconds, self._timeout)

  def _check_usable(self) -> None:
    if self.refusal:
      raise RuntimeError(self.refusal)


class RemoteBlock:
  """Implements the methods of a block by requests to several workers.

  Args:
    pool: The workers.
    number: Number of this block in the pool.
    shares: Rows of each worker that has any.
    memory: Descriptor of the shared memory; closed with the block.
    requests: For each worker, the encoded request to build its share.
  """

  deterministic = True

  def __init__(
    self,
    pool: WorkerPool,
    number: int,
    shares: dict[connection.WorkerConnection, slice],
    memory: int,
    requests: dict[connection.WorkerConnection, bytes],
  ) -> None:
    self._pool = pool
    self.number = number
    self.shares = shares
    self.build: replacement.Messages = {
      worker: (request, memory) for worker, request in requests.items()
    }
    self.wake: replacement.Messages = dict.fromkeys(shares, (bytes([number]),))
    self._memory = memory
    self._steps: list[replacement.Request] = []  # Begun by `step_async`.

  def step(self) -> dict[int, Any]:
    """Steps all shares at the same time.

    Returns:
      The reports of all workers; see `GymnasiumBlock.step`.
    """
    self.step_async()
    return self.step_wait()

  def step_async(self) -> None:
    """Wakes the workers without waiting for their steps."""
    self._steps.append(self._pool.ask(self, self.wake))

  def step_wait(self) -> dict[int, Any]:
    """Waits for the step that `step_async` began.

    Returns:
      The reports of all workers; see `GymnasiumBlock.step`.
    """
    reports: dict[int, Any] = {}
    for result in self._pool.wait(self._steps.pop(0)):
      reports.update(result or {})
    return reports

  def request(self, name: str, *args: Any) -> list[Any]:
    """Calls a method of all shares.

    Args:
      name: Name of a method of the block's class.
      args: Arguments. Lists have one element per row; each worker receives the
        elements of its rows.

    Returns:
      The joined lists that the method returns.
    """
    return [item for result in self._pool.wait(self.ask(name, *args)) for item in result or ()]

  reset = functools.partialmethod(request, "reset")
  begin_next = functools.partialmethod(request, "begin_next")
  replay = functools.partialmethod(request, "replay")
  play = functools.partialmethod(request, "play")
  call = functools.partialmethod(request, "call")
  get = functools.partialmethod(request, "get")
  set = functools.partialmethod(request, "set")

  def close(self) -> None:
    """Closes the environments; ends the workers if they do not answer."""
    os.close(self._memory)
    self._pool.close_block(self)

  def ask(self, name: str, *args: Any) -> replacement.Request:
    """Sends a request without waiting for its answers.

    Args:
      name: Name of a method of the block's class.
      args: Arguments; see `request`.

    Returns:
      The request, for `WorkerPool.wait`.

    Raises:
      RuntimeError: If the workers accept no requests.
    """
    # Encodes all messages before it sends the first, so that an argument that
    # cannot be pickled leaves the workers usable.
    messages = {worker: self.message(worker, name, *args) for worker in self.shares}
    return self._pool.ask(self, messages)

  def message(self, worker: connection.WorkerConnection, name: str, *args: Any) -> tuple[bytes]:
    """Encodes a request to one worker.

    Args:
      worker: Worker of a share.
      name: Name of a method of the block's class.
      args: Arguments; see `request`.

    Returns:
      Arguments of `WorkerConnection.send`.
    """
    rows = self.shares[worker]
    share = [arg[rows] if isinstance(arg, list) else arg for arg in args]
    return (protocol.encode(protocol.REQUEST, (self.number, name, share)),)
