"""Repeats what an environment failed in; see --help."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

from agents import config as config_lib
from agents.commands import program
from agents.environments import batch_env
from agents.environments import make
from agents.training import crashes

_EXAMPLES = """\
examples:
  {0} ~/logdir/20260101T120000-robot/crashes/000000012288-1
  python -m pdb -m agents replay ~/logdir/20260101T120000-robot/crashes/*-1
"""


def main(argv: list[str] | None = None) -> int:
  name = program.command("replay")
  parser = argparse.ArgumentParser(
      prog=name, allow_abbrev=False, epilog=_EXAMPLES.format(name),
      description="Repeat the episode that an environment failed in, in this "
      "process: the same seed, the same actions. Its error comes out as "
      "itself, for a debugger to stop at.",
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "crash", metavar="CRASH_DIR", type=pathlib.Path,
      help="a folder in RUN_DIR/crashes/")
  args = parser.parse_args(argv)
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  try:
    crash = crashes.load(args.crash.expanduser())
  except config_lib.ConfigError as error:
    parser.exit(2, f"{name}: error: {error}\n")
  return _replay(crash)


def _replay(crash: crashes.Crash) -> int:
  text, broken = crash.incident
  if broken is None:
    print(f"No environment failed, but a worker:\n{text}", file=sys.stderr)
    return 2
  print(text.partition("\n")[0])
  constructor = make.MakeEnv(crash.config.env)
  with batch_env.BatchEnv([constructor]) as batch:
    batch.reset([broken.seed])
    for action in broken.action:
      batch.step(action[None])
  print(f"All {len(broken.action)} steps were repeated, and nothing failed: "
        "the environment depends on more than seed and actions.")
  return 0
