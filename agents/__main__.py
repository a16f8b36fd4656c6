"""Entry point of `python -m agents`, and of the installed `batch-ppo`."""

import sys

from agents.commands import (
  check,
  cli,
  export,
  replay,
  report,
  sweep,
  train,
  visualize,
)

_COMMANDS = {"train": train, "visualize": visualize, "report": report,
             "export": export, "sweep": sweep, "check": check,
             "replay": replay}
_USAGE = """\
usage: {name} COMMAND ...

  train      train a named config, or resume a run
  visualize  render videos of a learned policy
  report     write learning curves of runs, with all numbers, as HTML
  export     write a learned policy for other programs
  sweep      search for settings with many runs
  check      check whether an environment is ready for training
  replay     repeat the episodes in which an environment failed

`{name} COMMAND --help` prints the options.
"""


def main() -> int:
  """Runs the command that the first argument names; returns the exit code."""
  arguments = sys.argv[1:]
  if arguments and arguments[0] in _COMMANDS:
    exit_code = _COMMANDS[arguments[0]].main(arguments[1:])
    cli.end_after_signal(exit_code)
    return exit_code
  is_help = arguments in (["--help"], ["-h"])
  print(_USAGE.format(name=cli.name()), end="",
        file=sys.stdout if is_help else sys.stderr)
  return 0 if is_help else 2


if __name__ == "__main__":
  sys.exit(main())
