"""Starts the worker processes of a run."""

from agents import config as config_lib
from agents.environments.data import failure_budget
from agents.environments.workers import pool


def start_workers(
  config: config_lib.Config,
  interrupt_fd: int | None = None,
  variables: dict[str, str] | None = None,
) -> pool.WorkerPool | None:
  """Starts worker processes, and does not wait until they are ready.

  Args:
    config: Configuration of the run.
    interrupt_fd: See `WorkerPool`.
    variables: See `WorkerPool`.

  Returns:
    The workers, or None if this process steps the environments.
  """
  if not config.env_processes:
    return None
  return pool.WorkerPool(
    config.workers(pool.num_cores()),
    interrupt_fd,
    variables,
    failure_budget=failure_budget.FailureBudget(config.max_failures),
    timeout=config.env_timeout,
  )
