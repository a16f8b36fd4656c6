"""Replaces a dead worker with a new one in the same state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from agents.environments.data import failure_budget as failure_budget_lib
from agents.environments.data import replay_source
from agents.environments.workers import process, protocol

if TYPE_CHECKING:
  from agents.environments.workers import pool

SECONDS_TO_OPEN = 60.0  # Minimum for a new process and its environments.

# Sends a message to a worker about its rows of a block.
Send = Callable[[process.WorkerProcess, slice], None]


@dataclasses.dataclass
class Request:
  """A request to all workers of a block, and the answers so far."""

  block: pool.RemoteBlock
  send: Send
  seconds: float  # Limit for an answer; 0: none.
  waiting: list[tuple[process.WorkerProcess, slice]]
  answers: list[protocol.Answer] = dataclasses.field(default_factory=list)


def replace_worker(
    worker: process.WorkerProcess, death: process.WorkerDied,
    blocks: Mapping[pool.RemoteBlock, replay_source.ReplaySource | None],
    requests: Iterable[Request],
    failure_budget: failure_budget_lib.FailureBudget,
    receive: Callable[..., None]):
  """Starts a new process, rebuilds its environments and repeats requests.

  Args:
    worker: Worker that died.
    death: Its error.
    blocks: Open blocks, with the source of their running episodes.
    requests: Requests that still miss answers.
    failure_budget: Records the failure.
    receive: Receives one answer, given a worker and the minimum of its time
      limit.

  Raises:
    WorkerDied: If the failure budget is used up.
  """
  while True:
    failed = [
        episode for request in requests
        if (source := blocks.get(request.block))
        for waiting, rows in request.waiting if waiting is worker
        for episode in source.failed_episodes(
            rows, request.send == request.block.wake)]
    if not failure_budget.record(
        failure_budget_lib.Failure(str(death), tuple(failed))):
      raise death
    try:
      worker.replace()
      for block, source in blocks.items():
        assert source
        for rows in [rows for other, rows in block.shares if other is worker]:
          _rebuild(worker, rows, block, source, receive)
      for request in requests:
        for waiting, rows in request.waiting:
          if waiting is worker:
            request.send(worker, rows)
      return
    except process.WorkerDied as again:
      death = again


def _rebuild(worker: process.WorkerProcess, rows: slice,
             block: pool.RemoteBlock, source: replay_source.ReplaySource,
             receive: Callable[..., None]):
  """Builds a worker's share of a block again and replays its episodes."""
  block.build(worker, rows)
  receive(worker, SECONDS_TO_OPEN)
  if running := source.running():
    worker.request((block.number, "replay", tuple(
        field[rows] for field in running)))
    receive(worker)
    source.check(rows)
