"""Trains a named config or resumes a run; see `python train.py --help`."""

import sys

from agents.commands import parsing, train

if __name__ == "__main__":
  exit_code = train.main()
  parsing.end_after_signal(exit_code)
  sys.exit(exit_code)
