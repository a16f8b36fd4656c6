"""Becomes another program, on one core, that ends when its parent does.

    python -m agents.sweeps.trial_process CORE PROGRAM ARGUMENTS...

CORE is a number, or "all". Where a system can't do these, they are not done.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).


def main():
  core, *command = sys.argv[1:]
  if core != "all" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(core)})
  with contextlib.suppress(AttributeError):
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
  # Machines share a sweep, not each of its runs.
  os.environ.pop("TF_CONFIG", None)
  os.execv(command[0], command)


if __name__ == "__main__":
  main()
