"""The trainer's end of its worker processes."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import cloudpickle
import gymnasium
import numpy as np

from agents import errors
from agents.environments import block as block_lib
from agents.environments import messages
from agents.environments import mujoco_log
from agents.environments import process as process_lib

SECONDS_TO_CLOSE = 3.0
_SECONDS_TO_CHECK = 1.0


class Interrupted(errors.EnvironmentsError):
  """The user wants to stop and the environments take too long to answer."""


def cores() -> int:
  """Cores that this process may use."""
  if hasattr(os, "sched_getaffinity"):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def shares(batch: int, amount: int) -> list[tuple[int, int]]:
  """Return the first environment of each worker, and the one behind its last.
  """
  bounds = [number * batch // amount for number in range(amount + 1)]
  return list(zip(bounds[:-1], bounds[1:], strict=True))


class Workers:
  """A few processes, each stepping its share of every batch opened on them.

  Args:
    amount: Number of processes.
    interrupt_fd: A descriptor that becomes readable when waiting for the
      environments must end with Interrupted.
    variables: Environment variables of the processes, beside those of this.
  """

  def __init__(self, amount: int, interrupt_fd: int | None = None,
               variables: dict[str, str] | None = None):
    if amount < 1:
      raise ValueError(f"`amount` must be at least 1. Received: {amount}.")
    self._interrupt_fd = interrupt_fd
    if sys.platform == "win32":
      raise errors.RunError(
          "Workers inherit file descriptors, which Windows can't do; run this "
          "in WSL, or with --noenv_processes.")
    self._workers: list[process_lib.Worker] = []
    self._polls: list[select.poll] = []  # One for each worker.
    self._num_blocks = 0
    # Who is owed answers, in order of requests, and what came for others
    # meanwhile.
    self._owed: collections.deque[RemoteBlock] = collections.deque()
    self._kept: dict[RemoteBlock, list[list[messages.Answer]]] = {}
    self._given_up = False
    try:
      for number in range(amount):
        worker = process_lib.Worker(number, variables or {})
        self._workers.append(worker)
        poll = select.poll()
        poll.register(worker.connection, select.POLLIN)
        if interrupt_fd is not None:
          poll.register(interrupt_fd, select.POLLIN)
        self._polls.append(poll)
    except BaseException:
      self.close()
      raise

  def __len__(self) -> int:
    return len(self._workers)

  @property
  def pids(self) -> list[int]:
    return [worker.process.pid for worker in self._workers]

  def open(self, constructors: Sequence[block_lib.Constructor], first: int,
           spaces: tuple[gymnasium.Space, gymnasium.Space], descriptor: int,
           run_seed: int) -> RemoteBlock:
    """Build environments on all workers, an even share on each.

    Args:
      constructors: One function for each environment.
      first: Index of the first one within its batch.
      spaces: Observation and action space.
      descriptor: Shared memory of the size `layout.batch_views` needs.
      run_seed: Seed from which each episode's own seed is derived.
    """
    if self._num_blocks == messages.BLOCKS:
      raise RuntimeError(f"{self._num_blocks} batches were opened on these "
                         "workers, which is all they can tell apart.")
    self._check_usable()
    size = len(constructors)
    # Each group of a batch begins with the next worker, so that what does not
    # divide evenly does not always fall on the same ones.
    turn = first // size % len(self._workers)
    workers = [*self._workers[turn:], *self._workers[:turn]]
    parts = [(worker, slice(*share)) for worker, share in zip(
        workers, shares(size, len(workers)), strict=True)]
    block = RemoteBlock(self, self._num_blocks, parts)
    with self.asking(block):
      for worker, here in block.shares:
        worker.request(self._num_blocks, "open", (
            size, here.start, first, cloudpickle.dumps(constructors[here]),
            spaces, run_seed), descriptor)
    self._num_blocks += 1
    try:
      self.wait(block)
    except Exception:
      with contextlib.suppress(Exception):
        block.close()  # Some workers have built theirs.
      raise
    return block

  def wait(self, block: RemoteBlock, seconds: float | None = None
           ) -> list[Any]:
    """Wait for the answers to a block's oldest request and return the results.

    Args:
      block: That has asked.
      seconds: How long to wait at most, without heeding interrupts; None for
        as long as it takes.
    Raises:
      Exception: What an environment raised, as itself; its cause says where.
      process_lib.WorkerDied: If a process ended.
      Interrupted: If `interrupt_fd` became readable.
      TimeoutError: If `seconds` have passed.
    """
    self._check_usable()
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
      while not self._kept.get(block):
        # A worker answers in order of the requests.
        asked = self._owed[0]
        answers = []
        for number, worker in enumerate(asked.used):
          self._wait_for_first(asked.used[number:], deadline)
          answers.append(worker.receive())
        self._kept.setdefault(asked, []).append(answers)
        self._owed.popleft()
    except BaseException:
      self._given_up = True
      raise
    answers = self._kept[block].pop(0)
    for answer in answers:
      for warning in answer.warnings:
        mujoco_log.warn(warning)
    for answer in answers:
      if answer.error is not None:
        if isinstance(answer.error, block_lib.EnvironmentFailure):
          raise block_lib.EnvironmentFailure(answer.failure)
        raise answer.error from block_lib.EnvironmentFailure(answer.failure)
    return [answer.result for answer in answers]

  def _wait_for_first(self, workers: Sequence[process_lib.Worker],
                      deadline: float | None):
    """Wait until the first of some workers has something to say."""
    descriptor = workers[0].connection.fileno()
    poll = self._polls[workers[0].number]
    while True:
      ready = [ready for ready, _ in poll.poll(1000 * _SECONDS_TO_CHECK)]
      if descriptor in ready:
        return
      if deadline is None and ready:
        raise Interrupted("Interrupted while environments were stepping.")
      if deadline is not None and time.monotonic() > deadline:
        raise TimeoutError("No answer in time.")
      # What an environment forked may hold a dead worker's connection open.
      for worker in workers:
        worker.check_alive()
      if ready:
        time.sleep(0.001)  # The interrupt stays readable.

  @property
  def usable(self) -> bool:
    """Whether workers still do what they are asked to."""
    return bool(self._workers) and not self._given_up

  @contextlib.contextmanager
  def asking(self, block: RemoteBlock):
    """Context in which a block asks its workers for something.

    Raises:
      RuntimeError: If nothing can be asked of the workers any more.
    """
    self._check_usable()
    try:
      yield
    except BaseException:
      self._given_up = True
      raise
    self._owed.append(block)

  def _check_usable(self):
    if not self._workers:
      raise RuntimeError("The workers are closed.")
    if self._given_up:
      raise RuntimeError("A worker has died or was given up; all that can be "
                         "done with the workers is to close them.")

  def close(self, patience: float = SECONDS_TO_CLOSE):
    """Ask every process to end, wait, terminate, kill. Can be repeated.

    Args:
      patience: Seconds for the environments to close.
    """
    workers, self._workers = self._workers, []
    for worker in workers:
      worker.hang_up()
    for urge, seconds in (
        (None, patience), (subprocess.Popen.terminate, 1.0),
        (subprocess.Popen.kill, 5.0)):
      deadline = time.monotonic() + seconds
      for worker in workers:
        if urge and worker.process.poll() is None:
          urge(worker.process)
      for worker in workers:
        try:
          worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
          pass
    for worker in workers:
      worker.let_go()

  def __enter__(self) -> Workers:
    return self

  def __exit__(self, *_):
    self.close()


class RemoteBlock:
  """The same methods as `block.Block`, carried out by several workers."""

  def __init__(self, workers: Workers, number: int,
               shares: list[tuple[process_lib.Worker, slice]]):
    self._workers = workers
    self._number = number
    self.shares = [(worker, here) for worker, here in shares
                   if here.start < here.stop]
    self.used = [worker for worker, _ in self.shares]
    self._wake = bytes([number])

  def reset(self, seeds: Sequence[int]):
    self._request("reset", lambda here: (seeds[here],))

  def step_async(self):
    with self._workers.asking(self):
      for worker in self.used:
        worker.send(self._wake)

  def step_wait(self) -> dict[int, dict[str, Any]]:
    finished: dict[int, dict[str, Any]] = {}
    for result in self._workers.wait(self):
      finished.update(result or {})
    return finished

  def step_discard(self, seconds: float | None = None):
    with contextlib.suppress(Exception):
      self._workers.wait(self, seconds)

  def replay(self, episode: Sequence[int], seeds: Sequence[int],
             actions: Sequence[np.ndarray]):
    self._request("replay", lambda here: (
        episode[here], seeds[here], actions[here]))

  def call(self, name: str, args: tuple, kwargs: dict) -> list[Any]:
    return sum(self._request("call", lambda _: (name, args, kwargs)), [])

  def get(self, name: str) -> list[Any]:
    return sum(self._request("get", lambda _: (name,)), [])

  def close(self):
    try:
      if self._workers.usable:
        self._send("close", lambda _: ())
        self._workers.wait(self, SECONDS_TO_CLOSE)
        return
    except (TimeoutError, process_lib.WorkerDied):
      pass
    self._workers.close()  # They are busy, or gone.

  def _request(self, name: str, arguments: Callable[[slice], tuple]
               ) -> list[Any]:
    self._send(name, arguments)
    return self._workers.wait(self)

  def _send(self, name: str, arguments: Callable[[slice], tuple]):
    with self._workers.asking(self):
      for worker, here in self.shares:
        worker.request(self._number, name, arguments(here))
