"""How a command is typed, the way this one was, and how it ends by errors."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys

from agents import config as config_lib
from agents import errors

_SCRIPTS = "train.py", "visualize.py"


def name() -> str:
  """Return what stands before the command: "batch-ppo", for example."""
  if os.path.basename(sys.argv[0]) == "batch-ppo":
    return "batch-ppo"
  return "python -m agents"


def command(which: str) -> str:
  """Return what runs "train", "visualize" or "check" from this folder."""
  folder, script = os.path.split(sys.argv[0])
  if script in _SCRIPTS and f"{which}.py" in _SCRIPTS:
    return f"python {shlex.quote(os.path.join(folder, f'{which}.py'))}"
  return f"{name()} {which}"


@contextlib.contextmanager
def exit_on_error(parser: argparse.ArgumentParser):
  """End the program by a line on what was wrong: its input, or the world."""
  try:
    yield
  except config_lib.ConfigError as error:
    parser.exit(2, f"{parser.prog}: error: {error}\n")
  except KeyboardInterrupt:
    parser.exit(130)
  except (errors.RunError, OSError) as error:
    parser.exit(1, f"{parser.prog}: {type(error).__name__}: {error}\n")
