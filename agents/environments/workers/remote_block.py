"""A block of environments that the workers of a pool share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import cloudpickle
import numpy as np

from agents.environments.workers import process

if TYPE_CHECKING:
  from agents.environments.workers import pool as pool_lib

# Sends a message to a worker about its rows of the block.
Send = Callable[[process.WorkerProcess, slice], None]


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

  def __init__(self, pool: pool_lib.WorkerPool, number: int,
               shares: list[tuple[process.WorkerProcess, slice]],
               descriptor: int, build: Send):
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
