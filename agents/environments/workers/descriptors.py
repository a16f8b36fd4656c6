"""Raises the limit of open files, which many workers would exceed."""

import os
import resource

from agents import errors

_PER_WORKER = 3  # Connection, lifeline and stack traces of a `WorkerConnection`.
_SPARE = 256  # For other files, such as those of the run.


def raise_limit(num_workers: int) -> None:
  """Raises the soft limit of open files if new workers would exceed it.

  Args:
    num_workers: Number of worker processes to start.

  Raises:
    RunError: If the hard limit is too low.
  """
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  others = len(os.listdir("/dev/fd")) + _SPARE
  needed = others + _PER_WORKER * num_workers
  if soft == resource.RLIM_INFINITY or soft >= needed:
    return
  try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
  except ValueError:
    raise errors.RunError(
      f"{num_workers} workers need {needed} open files, but the hard limit of this process is "
      f"{hard}. Raise it (`ulimit -Hn {needed}` as root, LimitNOFILE of systemd, or --ulimit of "
      f"Docker), or use fewer workers: --set num_workers={max(1, (hard - others) // _PER_WORKER)}."
    ) from None
