"""Completes command lines in the shell.

At each Tab, the script of `batched-ppo completion` starts the program, with the
command line in environment variables. `argcomplete` derives the completions
from the parser of the command.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from agents import config as config_lib
from agents import configs
from agents.configs import presets
from agents.zoo import entries

HINT = "completion needs argcomplete: pip install 'batched-ppo[completion]'."


def requested() -> bool:
  """Returns whether the shell has started this process to complete a line."""
  return "_ARGCOMPLETE" in os.environ


def words() -> list[str]:
  """Returns the words between the program and the word at the cursor.

  The list is empty if the shell has not requested completions.
  """
  if not requested():
    return []
  line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
  # The character is in no word, so the word at the cursor is the last one.
  return f"{line}\0".split()[1:-1]


def answer(parser: argparse.ArgumentParser) -> None:
  """Writes the completions of a subcommand's options, and ends the process.

  Args:
    parser: Parser of the subcommand.
  """
  os.environ["_ARGCOMPLETE"] = "2"  # The line begins with program and subcommand.
  _answer(parser)


def answer_commands(commands: Mapping[str, str]) -> None:
  """Writes the completions of a subcommand's name, and ends the process.

  Args:
    commands: Descriptions of the subcommands by name.
  """
  parser = argparse.ArgumentParser()
  parser.add_argument("--version", action="store_true", help="print the version of the package")
  name = parser.add_argument("name")
  name.completer = lambda **_: commands  # type: ignore[attr-defined]
  _answer(parser)


def _answer(parser: argparse.ArgumentParser) -> None:
  try:
    import argcomplete
  except ImportError:
    sys.exit(HINT)
  argcomplete.autocomplete(parser)


def _configs(prefix: str, **_: Any) -> list[str]:
  """Returns the configs that begin with the prefix, or files if none does."""
  from argcomplete import completers

  names = [name for name in configs.names() if name.startswith(prefix)]
  return names or list(completers.FilesCompleter()(prefix))


def _policies(**_: Any) -> list[str]:
  return entries.names()


def _origins(prefix: str, **_: Any) -> list[str]:
  """Returns the policies of the zoo that begin with the prefix, and files."""
  from argcomplete import completers

  names = [name for name in entries.names() if name.startswith(prefix)]
  return names + list(completers.FilesCompleter()(prefix))


def _presets(**_: Any) -> list[str]:
  return presets.names()


def _settings(**_: Any) -> list[str]:
  return [f"{key}=" for key in config_lib.flat(config_lib.Config())]


# Functions that return the possible values, by the name of the parsed argument.
# Choices and files need no function.
COMPLETERS: dict[str, Callable[..., Any]] = {
  "config": _configs,
  "entry": _policies,
  "from": _origins,
  "name": _configs,
  "preset": _presets,
  "pretrained": _policies,
  "set": _settings,
}
