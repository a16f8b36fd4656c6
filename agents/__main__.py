"""Entry point of `python -m agents`, and of the installed `batched-ppo`."""

import importlib
import sys

from agents import version
from agents.commands import parsing
from agents.commands.shared import completing

# Description of each command. The module `agents.commands.NAME` runs it.
COMMANDS = {
  "train": "train a named config, or resume a run",
  "list": "print the named configs",
  "config": "print all settings of a config or a run",
  "visualize": "render videos of a learned policy",
  "watch": "show running and finished runs on a live page",
  "report": "write an HTML page with the learning curves of runs",
  "export": "write a learned policy for other programs",
  "stress": "measure how a policy withstands pushes, delays and other disturbances",
  "sweep": "search for settings with many runs",
  "check": "check whether an environment is ready for training",
  "replay": "repeat the episodes in which an environment failed",
  "zoo": "list, film and verify the trained policies of the package",
  "completion": "print a script that completes commands in the shell",
}


def main() -> int:
  """Runs the command named by the first argument; returns its exit code."""
  parsing.exclude_current_folder()
  name, *arguments = completing.words() or sys.argv[1:] or [""]
  if name in COMMANDS:
    command = importlib.import_module(f"agents.commands.{name}")
    exit_code = command.main(arguments)
    parsing.end_after_signal(exit_code)
    return exit_code
  if completing.requested():
    completing.answer_commands(COMMANDS)
  if name == "--version":
    print(version.__version__)
    return 0
  is_help = name in ("--help", "-h")
  if name and not is_help:
    print(f"Unknown command '{name}'.\n", file=sys.stderr)
  print(_usage(), file=sys.stdout if is_help else sys.stderr)
  return 0 if is_help else 2


def _usage() -> str:
  program, width = parsing.name(), max(map(len, COMMANDS))
  return "\n".join(
    [
      f"usage: {program} COMMAND ...\n",
      *(f"  {name:{width}}  {text}" for name, text in COMMANDS.items()),
      f"\n`{program} COMMAND --help` prints the options.",
    ]
  )


if __name__ == "__main__":
  sys.exit(main())
