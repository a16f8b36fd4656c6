"""The processes that step the environments of a run."""

from __future__ import annotations

from agents import config as config_lib
from agents.environments import incidents
from agents.environments import workers as workers_lib
from agents.training import interrupts as interrupts_lib


def workers(config: config_lib.Config, interrupts: interrupts_lib.Interrupts
            ) -> workers_lib.Workers | None:
  """Start them; they get ready while the caller does something else.

  Args:
    config: Of the run.
    interrupts: That end waiting for them.
  Returns:
    The workers, or None if this process is to step the environments.
  """
  if not config.env_processes:
    return None
  return workers_lib.Workers(
      config.workers(workers_lib.cores()), interrupts.give_up_fd,
      incidents=incidents.Incidents(config.most_incidents),
      timeout=config.env_timeout)
