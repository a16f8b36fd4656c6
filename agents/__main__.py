"""`python -m agents`, and `batch-ppo` where the package is installed."""

from __future__ import annotations

import sys

from agents.commands import check
from agents.commands import cli
from agents.commands import export
from agents.commands import replay
from agents.commands import report
from agents.commands import sweep
from agents.commands import train
from agents.commands import visualize

_COMMANDS = {"train": train, "visualize": visualize, "report": report,
             "export": export, "sweep": sweep, "check": check,
             "replay": replay}
_USAGE = """\
usage: {name} COMMAND ...

  train      train a named config, or go on with a run
  visualize  film a learned policy
  report     write learning curves of runs, with all numbers, as HTML
  export     write a learned policy for other programs to run
  sweep      search for settings by many runs
  check      see whether an environment can be trained in
  replay     repeat the episode that an environment failed in

`{name} COMMAND --help` says more.
"""


def main() -> int:
  name = cli.name()
  if len(sys.argv) > 1 and sys.argv[1] in _COMMANDS:
    return _COMMANDS[sys.argv[1]].main(sys.argv[2:])
  asked = sys.argv[1:] in (["--help"], ["-h"])
  print(_USAGE.format(name=name), end="",
        file=sys.stdout if asked else sys.stderr)
  return 0 if asked else 2


if __name__ == "__main__":
  sys.exit(main())
