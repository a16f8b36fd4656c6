"""Scheduling policy and CPU affinity of worker processes.

A worker that wakes up must not preempt the trainer, which still has other
workers to wake. By default, the kernel may run the first worker on the
trainer's core at once, and all other workers wait for its step.
"""

import contextlib
import os


def core_for(number: int, num_workers: int) -> int | None:
  """Selects the CPU core of a worker if each worker can have its own.

  Without affinity, two workers sometimes share a core while another is idle.

  Args:
    number: Number of the worker, from 0.
    num_workers: Number of all workers.

  Returns:
    Index of the core, or None if workers and available cores differ in number.
  """
  if not hasattr(os, "sched_getaffinity"):
    return None
  cores = sorted(os.sched_getaffinity(0))
  return cores[number] if num_workers == len(cores) else None


def configure(pid: int, core: int | None) -> None:
  """Gives a worker process batch scheduling and pins it to a core.

  This needs no privileges and does nothing on systems without these policies,
  or if the trainer itself runs under another policy.

  Args:
    pid: Process id.
    core: Index of the core; None pins to no core.
  """
  if not hasattr(os, "SCHED_BATCH"):
    return
  # The process may have ended, or a sandbox may forbid the calls.
  with contextlib.suppress(OSError):
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
      return
    # Batch processes do not preempt ordinary processes when they wake up.
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
    if core is not None:
      os.sched_setaffinity(pid, {core})
