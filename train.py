"""Trains a named config, or resumes a run; see --help."""

import sys

from agents.commands import cli, train

if __name__ == "__main__":
  exit_code = train.main()
  cli.end_after_signal(exit_code)
  sys.exit(exit_code)
