"""The processes that step the environments of a run."""

from __future__ import annotations

from agents import config as config_lib
from agents.environments.data import failure_budget
from agents.environments.workers import pool
from agents.training.faults import interrupts as interrupts_lib


def workers(config: config_lib.Config, interrupts: interrupts_lib.Interrupts
            ) -> pool.WorkerPool | None:
  """Start them; they get ready while the caller does something else.

  Args:
    config: Of the run.
    interrupts: That end waiting for them.
  Returns:
    The workers, or None if this process is to step the environments.
  """
  if not config.env_processes:
    return None
  return pool.WorkerPool(
      config.workers(pool.cores()), interrupts.give_up_fd,
      incidents=failure_budget.FailureBudget(config.most_incidents),
      timeout=config.env_timeout)
