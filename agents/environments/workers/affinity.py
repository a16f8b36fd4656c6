"""When and where the processes of workers run.

Waking a worker must not stop the trainer, which still has others to wake: the
kernel may let the one that wakes run at once, on the same core, and all the
others wait for it.
"""

from __future__ import annotations

import contextlib
import os


def core_of(number: int, amount: int) -> int | None:
  """Return the core that one of several workers has for itself, if any.

  They have one each where there are just as many cores that may be used. Left
  to the kernel, two would share one now and then while another is idle.
  """
  if not hasattr(os, "sched_getaffinity"):
    return None
  cores = sorted(os.sched_getaffinity(0))
  return cores[number] if amount == len(cores) else None


def place(pid: int, core: int | None):
  """Have a process give way to the trainer, and stay on a core.

  That needs no rights; on a system that knows no such thing, nothing happens.

  Args:
    pid: Of the process.
    core: To stay on; None for any.
  """
  if not hasattr(os, "SCHED_BATCH"):
    return
  if os.sched_getscheduler(0) != os.SCHED_OTHER:
    return  # Somebody has chosen otherwise, for the workers, too.
  with contextlib.suppress(OSError):  # It ended, or a sandbox forbids it.
    # A batch process does not preempt an ordinary one when it wakes up.
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
    if core is not None:
      os.sched_setaffinity(pid, {core})
