"""Prints the result of a command as one JSON document, for programs.

A command stores its result in `args.result`. Its parser has the option --json;
see `parsing.add_json`.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def only_result(args: argparse.Namespace) -> Iterator[None]:
  """Context that prints only `args.result` on standard output.

  All other output goes to standard error. Without --json, the context has no
  effect. After an exception, it prints no document.

  Args:
    args: Parsed arguments.

  Yields:
    None.
  """
  if not args.json:
    yield
    return
  with _output_to_stderr():
    yield
  if args.result is not None:
    print(json.dumps(_to_json(args.result), indent=2), flush=True)


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
  """Redirects the output of this process, its libraries and child processes."""
  sys.stdout.flush()
  stdout = os.dup(1)
  os.dup2(2, 1)
  try:
    with contextlib.redirect_stdout(sys.stderr):
      yield
  finally:
    os.dup2(stdout, 1)
    os.close(stdout)


def _to_json(value: Any) -> Any:
  """Returns JSON data of a result.

  Named tuples become objects, and configs have the structure of config.yaml.
  Paths are absolute. JSON has no infinite numbers and NaN, so these become
  texts.
  """
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    value = dataclasses.asdict(value)
  elif hasattr(value, "_asdict"):
    value = value._asdict()
  if isinstance(value, dict):
    return {str(key): _to_json(each) for key, each in value.items()}
  if isinstance(value, (list, tuple)):
    return list(map(_to_json, value))
  if isinstance(value, pathlib.Path):
    return str(value.absolute())
  if isinstance(value, float) and not math.isfinite(value):
    return str(value)
  return value
