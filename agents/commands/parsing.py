"""Parsers, hints and error messages that all commands share."""

import argparse
import contextlib
import os
import shlex
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from agents import config as config_lib
from agents import errors

_SCRIPTS = "train.py", "visualize.py"


def name() -> str:
  """Returns the program that runs commands, such as "batch-ppo"."""
  installed = os.path.basename(sys.argv[0]) == "batch-ppo"
  return "batch-ppo" if installed else "python -m agents"


def command(which: str) -> str:
  """Returns the shell command that runs a command from the current folder.

  Args:
    which: Name of the command, such as "train".
  """
  folder, script = os.path.split(sys.argv[0])
  if script in _SCRIPTS and f"{which}.py" in _SCRIPTS:
    return f"python {shlex.quote(os.path.join(folder, f'{which}.py'))}"
  return f"{name()} {which}"


def end_after_signal(exit_code: int):
  """Ends the process at once if a signal has ended the command.

  A signal must end the process within ten seconds. The teardown of Python and
  TensorFlow can take seconds. It is not needed, because the command has already
  saved and closed everything.

  Args:
    exit_code: Exit code of the command; above 128 after a signal.
  """
  if exit_code > 128:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(exit_code)


def make_parser(which: str, text: str) -> argparse.ArgumentParser:
  """Returns the parser of a command, without arguments.

  Args:
    which: Name of the command, such as "train".
    text: Docstring of its module: a description, an empty line, and examples.
      %(prog)s is replaced by the command in the examples.
  """
  description, _, examples = text.partition("\n\n")
  return argparse.ArgumentParser(
      prog=command(which), description=textwrap.fill(description, 80),
      epilog=examples, allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)


def option(parser: argparse._ActionsContainer, usage: str, text: str,
           **settings: Any):
  """Adds an option or a positional argument to a parser.

  Args:
    parser: Parser, or a group of its options.
    usage: Name of the option, and of its value, such as "--seed N". An option
      with neither a value nor choices is a flag.
    text: Help of the option.
    **settings: Other arguments of `add_argument`.
  """
  name, _, value = usage.partition(" ")
  if value:
    settings["metavar"] = value
  elif "choices" not in settings:
    settings["action"] = "store_true"
  parser.add_argument(name, help=text, **settings)


def check_counts(args: argparse.Namespace, *names: str):
  """Raises ConfigError unless these options are at least 1, or not given.

  Args:
    args: Parsed arguments.
    *names: Names of options.
  """
  for name in names:
    if getattr(args, name) is not None and getattr(args, name) < 1:
      raise config_lib.ConfigError(f"--{name} must be at least 1.")


def settings(args: argparse.Namespace, *names: str) -> dict[str, Any]:
  """Returns the values of `--set`, and of settings with their own options.

  Args:
    args: Parsed arguments.
    *names: Settings with their own options. Options that were not given are
      left out.

  Raises:
    ConfigError: If a value of `--set` is not of the form `key=value`.
  """
  return dict(map(config_lib.parse_setting, args.set)) | {
      name: getattr(args, name) for name in names
      if getattr(args, name) is not None and getattr(args, name) is not False}


def import_from_current_folder():
  """Makes modules in the current folder, such as environments, importable."""
  sys.path.append(os.getcwd())


@contextlib.contextmanager
def parsed(parser: argparse.ArgumentParser, argv: list[str] | None
           ) -> Iterator[argparse.Namespace]:
  """Context that turns expected errors into one line and an exit code.

  Modules in the current folder, such as environments, become importable.

  Args:
    parser: Parser of the command.
    argv: Arguments; None takes those of the process.

  Yields:
    The parsed arguments.
  """
  args = parser.parse_args(argv)
  import_from_current_folder()
  try:
    yield args
  except config_lib.ConfigError as error:
    parser.exit(2, f"{parser.prog}: error: {error}\n")
  except KeyboardInterrupt:
    parser.exit(130)
  except (errors.RunError, OSError) as error:
    parser.exit(1, f"{parser.prog}: {type(error).__name__}: {error}\n")
