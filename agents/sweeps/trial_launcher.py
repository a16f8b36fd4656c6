"""Starts the program of a trial, on one core, as long as its parent lives.

    python -m agents.sweeps.trial_launcher CORE PROGRAM ARGUMENTS...

CORE is a number, or "all". Systems without CPU affinity or parent-death
signals skip these steps.
"""

import contextlib
import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).


def main():
  """Sets up this process and replaces it by the program."""
  core, *command = sys.argv[1:]
  if core != "all" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(core)})
  with contextlib.suppress(AttributeError):
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
  # Machines share the trials of a sweep; each trial runs on one machine.
  os.environ.pop("TF_CONFIG", None)
  os.execv(command[0], command)


if __name__ == "__main__":
  main()
