"""Entry point of `python -m agents`, and of the installed `batched-ppo`.

usage: {name} COMMAND ...

  train      train a named config, or resume a run
  visualize  render videos of a learned policy
  report     write an HTML page with the learning curves of runs
  export     write a learned policy for other programs
  sweep      search for settings with many runs
  check      check whether an environment is ready for training
  replay     repeat the episodes in which an environment failed

`{name} COMMAND --help` prints the options.
"""

import importlib
import sys

from agents import version
from agents.commands import parsing

_COMMANDS = ("train", "visualize", "report", "export", "sweep", "check", "replay")


def main() -> int:
  """Runs the command named by the first argument; returns its exit code."""
  parsing.exclude_current_folder()
  name, *arguments = sys.argv[1:] or [""]
  if name in _COMMANDS:
    command = importlib.import_module(f"agents.commands.{name}")
    exit_code = command.main(arguments)
    parsing.end_after_signal(exit_code)
    return exit_code
  if name == "--version":
    print(version.__version__)
    return 0
  is_help = name in ("--help", "-h")
  if name and not is_help:
    print(f"Unknown command '{name}'.\n", file=sys.stderr)
  _, _, usage = __doc__.partition("\n\n")
  print(usage.format(name=parsing.name()), end="", file=sys.stdout if is_help else sys.stderr)
  return 0 if is_help else 2


if __name__ == "__main__":
  sys.exit(main())
