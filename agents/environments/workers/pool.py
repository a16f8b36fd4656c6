"""The trainer's end of its worker processes."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import cloudpickle
import gymnasium
import numpy as np

from agents import errors
from agents.environments.blocks import base
from agents.environments.data import failure_budget
from agents.environments.data import mujoco_warnings
from agents.environments.making import gym_registry
from agents.environments.workers import affinity
from agents.environments.workers import process
from agents.environments.workers import protocol
from agents.environments.workers import remote_block

_SECONDS_TO_CHECK = 1.0
_SECONDS_TO_OPEN = 60.0  # At least, for a new process and its environments.


class Interrupted(errors.EnvironmentsError):
  """The user wants to stop and the environments take too long to answer."""


class ReplaySource(Protocol):
  """What a restarted worker needs to know of the environments of a block."""

  def running(self) -> tuple[list[int], list[int], list[np.ndarray]] | None:
    """Return number, seed and actions of each running episode, if there are.
    """

  def check(self, here: slice):
    """Raise an error if replaying did not lead to the last observations."""

  def episodes(self, here: slice, stepping: bool) -> list[failure_budget.FailedEpisode]:
    """Return running episodes, with the action of a step that has no answer."""


@dataclasses.dataclass
class _Question:
  """What a block has asked its workers, and who has answered."""

  block: remote_block.RemoteBlock
  send: remote_block.Send
  seconds: float  # That an answer may take; 0: forever.
  waiting: list[tuple[process.Worker, slice]]  # For whom, in this order.
  answers: list[protocol.Answer] = dataclasses.field(default_factory=list)


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


class WorkerPool:
  """A few processes, each stepping its share of every batch opened on them.

  Args:
    amount: Number of processes.
    interrupt_fd: A descriptor that becomes readable when waiting for the
      environments must end with Interrupted.
    variables: Environment variables of the processes, beside those of this.
    incidents: How many deaths are survived; none by default. Another process
      takes the place, and replays the episodes, so that nothing else changes.
    timeout: Seconds for a batched step, the reset of an environment or a step
      of a replay; who takes longer is killed. 0: forever.
  """

  def __init__(self, amount: int, interrupt_fd: int | None = None,
               variables: dict[str, str] | None = None,
               incidents: failure_budget.FailureBudget | None = None,
               timeout: float = 0.0):
    if amount < 1:
      raise ValueError(f"`amount` must be at least 1. Received: {amount}.")
    if sys.platform == "win32":
      raise errors.RunError(
          "Workers inherit file descriptors, which Windows can't do; run this "
          "in WSL, or with --noenv_processes.")
    self.incidents = incidents or failure_budget.FailureBudget()
    self._timeout = timeout
    self._workers: list[process.Worker] = []
    self._numbers: set[int] = set()  # Of all blocks there are.
    self._open: dict[remote_block.RemoteBlock, ReplaySource | None] = {}
    # In order of time, and what came for others meanwhile.
    self._questions: collections.deque[_Question] = collections.deque()
    self._kept: dict[remote_block.RemoteBlock, list[list[protocol.Answer]]] = {}
    self._given_up = False
    try:
      for number in range(amount):
        self._workers.append(process.Worker(
            number, variables or {}, interrupt_fd,
            self._seconds(_SECONDS_TO_OPEN),
            affinity.core_of(number, amount)))
    except BaseException:
      self.close()
      raise

  def __len__(self) -> int:
    return len(self._workers)

  @property
  def pids(self) -> list[int]:
    return [worker.process.pid for worker in self._workers]

  def open(self, kind: type[base.BlockBase],
           constructors: Sequence[base.Constructor], first: int,
           spaces: tuple[gymnasium.Space, gymnasium.Space], descriptor: int,
           history: ReplaySource | None, *options) -> remote_block.RemoteBlock:
    """Build environments on all workers, an even share on each.

    Args:
      kind: Of blocks, whose `views` finds the fields of the shared memory.
      constructors: One function for each environment.
      first: Index of the first one within its batch.
      spaces: Observation and action space.
      descriptor: Shared memory of the size that the views need.
      history: Of these environments, as far as their answers are known; None
        if nobody knows, so that the death of a worker is an error.
      options: Arguments of the kind that are its own.
    """
    number = next((number for number in range(protocol.BLOCKS)
                   if number not in self._numbers), None)
    if number is None:
      raise RuntimeError(f"{protocol.BLOCKS} batches are open on these "
                         "workers, which is all they can tell apart.")
    self._check_usable()
    size = len(constructors)
    # Each group of a batch begins with the next worker, so that what does not
    # divide evenly does not always fall on the same ones.
    turn = first // size % len(self._workers)
    workers = [*self._workers[turn:], *self._workers[:turn]]
    parts = [(worker, slice(*share)) for worker, share in zip(
        workers, shares(size, len(workers)), strict=True)]
    pickled = {here.start: cloudpickle.dumps(constructors[here])
               for _, here in parts}
    ids = gym_registry.packed()
    def build(worker, here):
      worker.request((block.number, "open", (
          kind, size, here.start, first, ids, pickled[here.start], spaces,
          options)), block.descriptor)
    block = remote_block.RemoteBlock(
        self, number, parts, os.dup(descriptor), build)
    self._numbers.add(number)
    try:
      self.ask(block, build, _SECONDS_TO_OPEN)
      self.wait(block)
    except Exception:
      with contextlib.suppress(Exception):
        block.close()  # Some workers have built theirs.
      raise
    self._open[block] = history
    return block

  def wait(self, block: remote_block.RemoteBlock, seconds: float | None = None
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
        question = self._questions[0]
        while question.waiting:
          try:
            question.answers.append(self._answer(
                [worker for worker, _ in question.waiting], question.seconds,
                deadline))
            del question.waiting[0]
          except process.WorkerDied as death:
            if deadline is not None:
              raise
            self._restart(death)
        self._kept.setdefault(question.block, []).append(question.answers)
        self._questions.popleft()
    except BaseException:
      self._given_up = True
      raise
    answers = self._kept[block].pop(0)
    for answer in answers:
      for warning in answer.warnings:
        mujoco_warnings.warn(warning)
    _raise_error(answers)
    return [answer.result for answer in answers]

  def _answer(self, workers: Sequence[process.Worker], seconds: float,
              deadline: float | None = None) -> protocol.Answer:
    """Return what the first of some workers has to say.

    Args:
      workers: Who is waited for, in this order.
      seconds: That an answer may take before a worker is killed; 0: forever.
      deadline: Time to give up at; None to heed interrupts instead.
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
      if waited > 2 * _SECONDS_TO_CHECK:  # All of us were stopped, by Ctrl-Z.
        for worker in workers:
          worker.since += waited
      if deadline is None and ready:
        raise Interrupted("Interrupted while environments were stepping.")
      if deadline is not None and time.monotonic() > deadline:
        raise TimeoutError("No answer in time.")
      if seconds and time.monotonic() > first.since + seconds:
        raise first.kill(seconds)
      # What an environment forked may hold a dead worker's connection open.
      for worker in workers:
        worker.check_alive()
      if ready:
        time.sleep(0.001)  # The interrupt stays readable.

  def _restart(self, death: process.WorkerDied):
    """Replace a worker, and bring the new one to where it was.

    Raises:
      process_lib.WorkerDied: If that has happened too often.
    """
    worker = self._workers[death.number]
    if any(self._kept.values()):
      raise death  # What came for others is of before, and can't come again.
    if None in self._open.values():
      raise death  # Nobody could bring its environments back.
    while True:
      if not self.incidents.survive(failure_budget.Failure(
          str(death), tuple(self._unanswered(worker)))):
        raise death
      try:
        worker.replace()
        for block, history in self._open.items():
          self._rebuild(block, history, worker)
        for question in self._questions:
          for waiting, here in question.waiting:
            if waiting is worker:
              question.send(worker, here)
        return
      except process.WorkerDied as again:
        death = again

  def _unanswered(self, worker: process.Worker
                  ) -> Iterator[failure_budget.FailedEpisode]:
    """Yield the episodes that a worker may have died of."""
    for question in self._questions:
      if history := self._open.get(question.block):
        for waiting, here in question.waiting:
          if waiting is worker:
            yield from history.episodes(
                here, question.send is question.block.step)

  def _rebuild(self, block: remote_block.RemoteBlock, history: ReplaySource | None,
               worker: process.Worker):
    """Build a worker's share of a block again, and replay its episodes."""
    assert history
    for here in [here for other, here in block.shares if other is worker]:
      block.build(worker, here)
      _raise_error([self._answer(
          [worker], self._seconds(_SECONDS_TO_OPEN))])
      if running := history.running():
        worker.request((block.number, "replay", tuple(
            part[here] for part in running)))
        _raise_error([self._answer([worker], self._seconds())])
        history.check(here)

  @property
  def usable(self) -> bool:
    """Whether workers still do what they are asked to."""
    return bool(self._workers) and not self._given_up

  def ask(self, block: remote_block.RemoteBlock, send: remote_block.Send,
          least: float = 0.0):
    """Ask all workers of a block for something.

    Args:
      block: To which the answers belong.
      send: Asks one worker, about its share of the environments.
      least: Seconds that an answer may take, whatever the timeout.
    Raises:
      RuntimeError: If nothing can be asked of the workers any more.
    """
    self._check_usable()
    try:
      for worker, here in block.shares:
        send(worker, here)
    except BaseException:
      self._given_up = True
      raise
    self._questions.append(_Question(
        block, send, self._seconds(least), list(block.shares)))

  def _seconds(self, least: float = 0.0) -> float:
    """Return the seconds that an answer may take; 0: forever."""
    return self._timeout and max(least, self._timeout)

  def forget(self, block: remote_block.RemoteBlock):
    """Don't build a block again that is being closed."""
    self._open.pop(block, None)

  def release(self, block: remote_block.RemoteBlock):
    """Let another block have the number of one that is closed."""
    self._kept.pop(block, None)
    self._numbers.discard(block.number)

  def _check_usable(self):
    if not self._workers:
      raise RuntimeError("The workers are closed.")
    if self._given_up:
      raise RuntimeError("A worker has died or was given up; all that can be "
                         "done with the workers is to close them.")

  def close(self, patience: float = process.SECONDS_TO_CLOSE):
    """Ask every process to end, wait, kill. Can be repeated.

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
        try:
          worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
          pass
    for worker in workers:
      worker.release()

  def __enter__(self) -> WorkerPool:
    return self

  def __exit__(self, *_):
    self.close()


def _raise_error(answers: Sequence[protocol.Answer]):
  """Raise the first error there is among some answers."""
  for answer in answers:
    if answer.error is not None:
      if isinstance(answer.error, base.EnvironmentFailure):
        raise answer.failure or answer.error
      raise answer.error from answer.failure
