"""Trains a named config, or resumes a run; see --help."""

import sys

from agents.commands import train

if __name__ == "__main__":
  sys.exit(train.main())
