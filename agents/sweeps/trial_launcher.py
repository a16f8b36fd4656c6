"""Runs a program on one core; the program ends if the parent process dies.

    python -m agents.sweeps.trial_launcher CORE PROGRAM ARGUMENTS...

CORE is the index of a CPU core, or "all". On systems without CPU affinity or
parent-death signals, the program runs without them.
"""

import contextlib
import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).


def main() -> None:
  """Sets up this process, and then executes the program in this process."""
  core, *command = sys.argv[1:]
  if core != "all" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(core)})
  with contextlib.suppress(AttributeError):
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
  # Each trial runs on one machine, not in the cluster of this variable.
  os.environ.pop("TF_CONFIG", None)
  os.execv(command[0], command)


if __name__ == "__main__":
  main()
