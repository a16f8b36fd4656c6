"""Renders videos of a learned policy; see --help."""

import sys

from agents.commands import visualize

if __name__ == "__main__":
  sys.exit(visualize.main())
