"""A block of environments that several workers share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import cloudpickle
import numpy as np

from agents.environments.workers import process

Send = Callable[[process.Worker, slice], None]


class Pool(Protocol):
  """What a block knows of all the workers there are; see `WorkerPool`."""

  @property
  def usable(self) -> bool:
    """Whether workers still do what they are asked to."""

  def ask(self, block: RemoteBlock, send: Send):
    """Ask all workers of a block for something."""

  def wait(self, block: RemoteBlock, seconds: float | None = None
           ) -> list[Any]:
    """Wait for the answers to a block's oldest request."""

  def forget(self, block: RemoteBlock):
    """Don't build a block again that is being closed."""

  def release(self, block: RemoteBlock):
    """Let another block have the number of one that is closed."""

  def close(self):
    """End all processes."""


class RemoteBlock:
  """The same methods as those of a block, carried out by several workers.

  What a step reports is a dictionary; those of the workers become one.

  Args:
    workers: That carry them out.
    number: Of this block.
    shares: Which worker has which environments.
    descriptor: Of the shared memory; closed with the block.
    build: Asks a worker to build its share.
  """

  repeats = True

  def __init__(self, workers: Pool, number: int,
               shares: list[tuple[process.Worker, slice]], descriptor: int,
               build: Send):
    self._workers = workers
    self.number = number
    self.shares = [(worker, here) for worker, here in shares
                   if here.start < here.stop]
    self.descriptor = descriptor
    self.build = build
    wake = bytes([number])
    self.step: Send = lambda worker, _: worker.send(wake)

  def reset(self, seeds: Sequence[Any]) -> list[Any]:
    return sum(self._request("reset", lambda here: (seeds[here],)), [])

  def begin_next(self, seeds: Sequence[int | None]) -> list[Any]:
    return sum(self._request("begin_next", lambda here: (seeds[here],)), [])

  def step_async(self):
    self._workers.ask(self, self.step)

  def step_wait(self) -> dict[int, Any]:
    reports: dict[int, Any] = {}
    for result in self._workers.wait(self):
      reports.update(result or {})
    return reports

  def step_discard(self, seconds: float | None = None):
    with contextlib.suppress(Exception):
      self._workers.wait(self, seconds)

  def replay(self, episode: Sequence[int], seeds: Sequence[int],
             actions: Sequence[np.ndarray]):
    self._request("replay", lambda here: (
        episode[here], seeds[here], actions[here]))

  def call(self, name: str, args: tuple, kwargs: dict, chosen: Sequence[bool]
           ) -> list[Any]:
    return sum(self._request("call", lambda here: (
        name, args, kwargs, chosen[here])), [])

  def get(self, name: str, chosen: Sequence[bool]) -> list[Any]:
    return sum(self._request("get", lambda here: (name, chosen[here])), [])

  def set(self, name: str, values: Sequence[Any], chosen: Sequence[bool]):
    self._request("set", lambda here: (name, values[here], chosen[here]))

  def close(self):
    self._workers.forget(self)
    if self.descriptor >= 0:
      os.close(self.descriptor)
      self.descriptor = -1
    try:
      if self._workers.usable:
        self._send("close", lambda _: ())
        try:
          self._workers.wait(self, process.SECONDS_TO_CLOSE)
        finally:
          self._workers.release(self)
        return
    except (TimeoutError, process.WorkerDied):
      pass
    self._workers.close()  # They are busy, or gone.

  def _request(self, name: str, arguments: Callable[[slice], tuple]
               ) -> list[Any]:
    self._send(name, arguments)
    return self._workers.wait(self)

  def _send(self, name: str, arguments: Callable[[slice], tuple]):
    # All before any is sent: who can't be pickled harms nobody.
    pickled = {here.start: cloudpickle.dumps((
        self.number, name, arguments(here))) for _, here in self.shares}
    self._workers.ask(self, lambda worker, here: worker.request(
        pickled[here.start]))
