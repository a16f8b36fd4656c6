"""Replaces a dead worker with a new one in the same state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agents.environments.data import failure_budget as failure_budget_lib
from agents.environments.data import replay_source
from agents.environments.workers import connection, process, protocol

if TYPE_CHECKING:
  from agents.environments.workers import pool

SECONDS_TO_OPEN = 60.0  # Minimum of the limit for starting a worker.

# Arguments of `WorkerConnection.send` for each worker of a block.
Messages = Mapping[connection.WorkerConnection, tuple[bytes] | tuple[bytes, int]]


@dataclasses.dataclass(eq=False)
class Request:
  """A request to all workers of a block, and the answers so far."""

  block: pool.RemoteBlock
  messages: Messages
  seconds: float  # Limit for an answer; 0: none.
  waiting: list[connection.WorkerConnection]  # In the order of their rows.
  answers: list[protocol.Answer]

  @property
  def is_build(self) -> bool:
    """Whether the request builds the environments of its block."""
    return self.messages is self.block.build


def replace_worker(
  worker: connection.WorkerConnection,
  death: process.WorkerDied,
  blocks: Mapping[pool.RemoteBlock, replay_source.ReplaySource | None],
  requests: Iterable[Request],
  failure_budget: failure_budget_lib.FailureBudget,
  receive: Callable[[connection.WorkerConnection, float], Any],
) -> None:
  """Starts a new process, rebuilds its environments and repeats requests.

  If the replay of an environment differs from its episode, its next step fails.
  All these failures together count as one.

  Args:
    worker: Worker that died.
    death: Error that describes its death.
    blocks: Open blocks, with the source of their running episodes; None only
      while a block is being built.
    requests: Requests to which some answers have not arrived.
    failure_budget: Records the failure.
    receive: Receives one answer, given a worker and the minimum of its time
      limit.

  Raises:
    WorkerDied: If the failure budget is used up.
  """
  repeated = [request for request in requests if worker in request.waiting]
  building = [request.block for request in repeated if request.is_build]
  while True:
    failed = [
      episode
      for request in repeated
      if (source := blocks.get(request.block))
      for episode in source.failed_episodes(
        request.block.shares[worker], request.messages is request.block.wake
      )
    ]
    if not failure_budget.record(failure_budget_lib.Failure(str(death), tuple(failed))):
      raise death
    try:
      worker.replace_process()
      for block, source in blocks.items():
        if (rows := block.shares.get(worker)) and block not in building:
          worker.send(*block.build[worker])
          receive(worker, SECONDS_TO_OPEN)
          if source and source.log.begun:
            worker.send(*block.message(worker, "replay", *source.running()))
            if differing := source.differing(rows, receive(worker, 0.0)):
              failure_budget.expect(len(differing))
              messages = [differing.get(offset) for offset in range(rows.stop)]
              worker.send(*block.message(worker, "fail_next", messages))
              receive(worker, 0.0)
      for request in repeated:
        worker.send(*request.messages[worker])
      return
    except process.WorkerDied as again:
      death = again
