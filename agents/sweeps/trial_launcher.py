"""Runs a program on one core; the program ends if the parent process dies.

The arguments are CORE PROGRAM ARGUMENTS... CORE is the index of a CPU core, or
"all". On systems without CPU affinity, the program runs without it. The
standard input is a pipe. When its other end is closed, the program receives
SIGTERM, and is killed 15 seconds later.
"""

import os
import sys

from agents.environments.workers import guard

_SECONDS_TO_END = 15.0  # Saving a run takes up to ten seconds.


def main() -> None:
  """Sets up this process, and then executes the program in this process."""
  core, *command = sys.argv[1:]
  if core != "all" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(core)})
  os.set_inheritable(guard.start(os.dup(0), _SECONDS_TO_END), True)
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  # Each trial runs on one machine, not in the cluster of this variable.
  os.environ.pop("TF_CONFIG", None)
  os.execv(command[0], command)


if __name__ == "__main__":
  main()
