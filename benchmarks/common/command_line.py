"""Shared command line options, and measurements in child processes."""

import argparse
import json
import pathlib
from typing import Any

from benchmarks.common import machine


def make_parser(doc: str | None, **defaults: str) -> argparse.ArgumentParser:
  """Returns a parser; its help text shows all defaults.

  Args:
    doc: Docstring of the module; its first line describes the command.
    defaults: Defaults of the shared options to add: `config`, `configs`,
      `seeds` and `set`. The default of `set` is always an empty list.
  """
  parser = argparse.ArgumentParser(
    description=(doc or "").splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
  )
  texts = {
    "config": "name or .py file of a config",
    "configs": "names or .py files of configs, separated by commas",
    "seeds": "such as 0-4 or 1,3",
  }
  for name, default in defaults.items():
    if name == "set":
      parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting, as for train.py",
      )
    else:
      parser.add_argument(f"--{name}", default=default, help=texts[name])
  return parser


def add_files(parser: argparse.ArgumentParser, name: str) -> None:
  """Adds options for the files of a benchmark that trains runs.

  Args:
    parser: Parser to extend.
    name: Name of the folder of runs and of the CSV file.
  """
  parser.add_argument(
    "--logdir",
    type=pathlib.Path,
    default=pathlib.Path("~/logdir", name),
    help="folder of the run folders",
  )
  parser.add_argument(
    "--results",
    type=pathlib.Path,
    default=machine.REPOSITORY / "docs/results" / f"{name}.csv",
    help="CSV file to append to",
  )


def measure_in_child(module: str, *args: str, **variables: str) -> Any:
  """Runs a module in a child process; parses its last line of output as JSON.

  Args:
    module: Name of the module.
    args: Command line arguments of the module.
    variables: Environment variables to add to those of this process.

  Raises:
    ProcessFailed: If the process fails.
  """
  output = machine.python("-m", module, *args, variables=variables)
  return json.loads(output.splitlines()[-1])
