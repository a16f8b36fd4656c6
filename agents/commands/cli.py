"""Parsers, hints and error messages that all commands share."""

import argparse
import contextlib
import os
import shlex
import sys
import textwrap
from collections.abc import Iterator

from agents import config as config_lib
from agents import errors

_SCRIPTS = "train.py", "visualize.py"
_WIDTH = 80  # Characters per line of a description.


def name() -> str:
  """Returns the program that runs commands, such as "batch-ppo"."""
  if os.path.basename(sys.argv[0]) == "batch-ppo":
    return "batch-ppo"
  return "python -m agents"


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

  The teardown of Python and TensorFlow can take seconds, although everything is
  saved and closed, and a signal must end the process within ten seconds.

  Args:
    exit_code: Exit code of the command; above 128 after a signal.
  """
  if exit_code > 128:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(exit_code)


def make_parser(which: str, description: str, examples: str
                ) -> argparse.ArgumentParser:
  """Returns the parser of a command, without arguments.

  Args:
    which: Name of the command, such as "train".
    description: Sentences on what the command does.
    examples: Text below the options, in which {0} stands for the command.
  """
  prog = command(which)
  return argparse.ArgumentParser(
      prog=prog, description=textwrap.fill(description, _WIDTH),
      epilog=examples.format(prog), allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)


def import_from_current_folder():
  """Makes modules in the current folder, such as environments, importable."""
  sys.path.append(os.getcwd())


@contextlib.contextmanager
def exit_on_error(parser: argparse.ArgumentParser) -> Iterator[None]:
  """Context that turns expected errors into one line and an exit code.

  Args:
    parser: Parser of the command.
  """
  try:
    yield
  except config_lib.ConfigError as error:
    parser.exit(2, f"{parser.prog}: error: {error}\n")
  except KeyboardInterrupt:
    parser.exit(130)
  except (errors.RunError, OSError) as error:
    parser.exit(1, f"{parser.prog}: {type(error).__name__}: {error}\n")
