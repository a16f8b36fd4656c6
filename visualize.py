"""Renders videos of a learned policy; see `python visualize.py --help`."""

import sys

from agents.commands import visualize

if __name__ == "__main__":
  sys.exit(visualize.main())
