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
from agents.commands.shared import completing, json_output
from agents.configs import presets

# Scripts in the repository root, each named like the command that it runs.
_SCRIPTS = "train.py", "visualize.py"


def name() -> str:
  """Returns the program in hints: "batched-ppo" or "python -m agents"."""
  installed = os.path.basename(sys.argv[0]) == "batched-ppo"
  return "batched-ppo" if installed else "python -m agents"


def command(subcommand: str) -> str:
  """Returns a command line that runs a subcommand from the current folder.

  Args:
    subcommand: Name of the subcommand, such as "train".
  """
  folder, script = os.path.split(sys.argv[0])
  if script in _SCRIPTS and f"{subcommand}.py" in _SCRIPTS:
    return f"python {shlex.quote(os.path.join(folder, f'{subcommand}.py'))}"
  return f"{name()} {subcommand}"


def end_after_signal(exit_code: int) -> None:
  """Ends the process at once if a signal has ended the command.

  After a signal, the process must end within ten seconds. The teardown of
  Python and TensorFlow can take several seconds. The teardown is not needed,
  because the command has already saved and closed everything.

  Args:
    exit_code: Exit code of the command; larger than 128 after a signal.
  """
  if exit_code > 128:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(exit_code)


class _Parser(argparse.ArgumentParser):
  """Parser that permits underscores for dashes, and completes for the shell.

  Earlier versions spelled some options with underscores.
  """

  def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
    if completing.requested():
      completing.answer(self)
    words = list(sys.argv[1:] if args is None else args)
    end = words.index("--") if "--" in words else len(words)
    for index, word in enumerate(words[:end]):
      if word.startswith("--"):
        name, equals, value = word.partition("=")
        words[index] = name.replace("_", "-") + equals + value
    return super().parse_args(words, namespace)


def make_parser(subcommand: str, text: str) -> argparse.ArgumentParser:
  """Returns the parser of a subcommand; arguments must be added to the parser.

  Args:
    subcommand: Name of the subcommand, such as "train".
    text: Docstring of the subcommand's module: a description, an empty line,
      and examples, which begin with "example". The parser replaces %(prog)s in
      the examples by the start of the command line.
  """
  description, start, examples = text.partition("\n\nexample")
  parser = _Parser(
    prog=command(subcommand),
    description=textwrap.fill(" ".join(description.split()), 80),
    epilog=(start + examples).strip(),
    allow_abbrev=False,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.set_defaults(json=False, result=None)
  return parser


def option(parser: argparse._ActionsContainer, usage: str, text: str, **settings: Any) -> None:
  """Adds an option or a positional argument to a parser.

  Args:
    parser: Parser, or argument group of a parser.
    usage: Name of the option and placeholder of its value, such as "--seed N".
      An option without a placeholder and without `choices` is a flag.
    text: Help text of the option.
    **settings: Other arguments of `add_argument`.
  """
  name, _, value = usage.partition(" ")
  if value:
    settings["metavar"] = value
  elif "choices" not in settings:
    settings["action"] = "store_true"
  action = parser.add_argument(name, help=text, **settings)
  if completer := completing.COMPLETERS.get(action.dest):
    action.completer = completer  # type: ignore[attr-defined]


def dashed(name: str) -> str:
  """Returns an option as the user types it, such as "--num-episodes".

  Args:
    name: Name of the parsed argument, such as "num_episodes".
  """
  return f"--{name.replace('_', '-')}"


def add_json(parser: argparse._ActionsContainer, text: str, **settings: Any) -> None:
  """Adds the option --json.

  The command stores its result in `args.result`. `json_output.only_result`,
  which is part of `parsed`, prints it.

  Args:
    parser: Parser of the subcommand.
    text: Description of the result.
    **settings: Other arguments of `add_argument`.
  """
  option(
    parser,
    "--json",
    f"print {text} as one JSON document; all other output goes to standard error",
    **settings,
  )


def add_preset(parser: argparse._ActionsContainer) -> None:
  """Adds the option --preset of commands that use a named config.

  Args:
    parser: Parser, or argument group of a parser.
  """
  option(
    parser,
    "--preset NAME",
    "preset that replaces algorithm and networks of the config: "
    f"{', '.join(presets.names())}; repeat the option to combine presets (default: no preset)",
    action="append",
    default=[],
  )


def add_run(parser: argparse._ActionsContainer, spelling: str, text: str) -> None:
  """Adds the argument RUN_DIR; `run` returns its value.

  Args:
    parser: Parser, or argument group of a parser.
    spelling: Option that names the run folder, too, such as "--resume".
    text: Help text.
  """
  text += "; in a folder of runs, the newest run with a checkpoint is used (no default)"
  option(parser, "run RUN_DIR", text, nargs="?")
  option(parser, f"{spelling} RUN_DIR", "same as RUN_DIR", dest="named_run")


def run(args: argparse.Namespace) -> str | None:
  """Returns the run folder of the command line, or None.

  Args:
    args: Parsed arguments of a parser with `add_run`.

  Raises:
    ConfigError: If the command line names two run folders.
  """
  if args.run and args.named_run:
    raise config_lib.ConfigError(f"name one run folder. Received: {args.run} and {args.named_run}.")
  return args.run or args.named_run


def check_counts(args: argparse.Namespace, *names: str) -> None:
  """Checks that options are at least 1 if the user has given them.

  Args:
    args: Parsed arguments.
    *names: Names of parsed arguments, such as "num_episodes".

  Raises:
    ConfigError: If an option is less than 1.
  """
  for name in names:
    if getattr(args, name) is not None and getattr(args, name) < 1:
      raise config_lib.ConfigError(f"{dashed(name)} must be at least 1.")


def settings(args: argparse.Namespace, *names: str) -> dict[str, Any]:
  """Returns the settings that the user changes, by dotted key.

  Args:
    args: Parsed arguments, with the option `--set`.
    *names: Other options, which change the setting of the same name and take
      precedence over `--set`. Options that the user has not given are left out.

  Raises:
    ConfigError: If a value of `--set` is not of the form `key=value`.
  """
  return dict(map(config_lib.parse_setting, args.set)) | {
    name: getattr(args, name)
    for name in names
    if getattr(args, name) is not None and getattr(args, name) is not False
  }


def add_code(parser: argparse._ActionsContainer) -> None:
  """Adds the option --code of commands that use the config of a run folder.

  Args:
    parser: Parser, or argument group of a parser.
  """
  option(
    parser,
    "--code DIR",
    "folder with modules that the run's config may name; repeat the option for more folders "
    "(default: none; modules that your own runs have named need no permission)",
    action="append",
    default=[],
  )


def exclude_current_folder() -> None:
  """Removes the current folder from Python's path unless it has this package.

  `python -m` adds the folder, which may contain files of other people.
  """
  current = os.path.realpath(os.getcwd())
  if current != os.path.dirname(os.path.dirname(os.path.realpath(config_lib.__file__))):
    sys.path[:] = [each for each in sys.path if os.path.realpath(each) != current]


def import_from_current_folder() -> None:
  """Makes modules in the current folder importable for the user's new run."""
  sys.path.append(os.getcwd())


@contextlib.contextmanager
def parsed(parser: argparse.ArgumentParser, argv: list[str] | None) -> Iterator[argparse.Namespace]:
  """Context that prints expected errors in one line and ends the process.

  With --json, the context prints `args.result` at its end.

  Args:
    parser: Parser of the subcommand.
    argv: Command-line arguments; None takes the arguments of the process.

  Yields:
    The parsed arguments.
  """
  args = parser.parse_args(argv)
  with json_output.only_result(args):
    try:
      yield args
    except config_lib.ConfigError as error:
      parser.exit(2, f"{parser.prog}: error: {error}\n")
    except KeyboardInterrupt:
      parser.exit(130)
    except (errors.RunError, OSError) as error:
      parser.exit(1, f"{parser.prog}: {type(error).__name__}: {error}\n")
