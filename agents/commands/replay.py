"""Repeats what an environment failed in; see --help."""

from __future__ import annotations

import argparse
import faulthandler
import os
import pathlib
import sys

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.commands import cli
from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.data import failure_budget
from agents.environments.making import make
from agents.training.faults import crash_folder
from agents.videos import recording
from agents.videos import video

_EXAMPLES = """\
examples:
  {0} ~/logdir/20260101T120000-robot/crashes/000000012288-1
  {0} ~/logdir/20260101T120000-robot/crashes/000000012288-1 --film crash.mp4
  python -m pdb -m agents replay ~/logdir/20260101T120000-robot/crashes/*-1
"""


def main(argv: list[str] | None = None) -> int:
  name = cli.command("replay")
  parser = argparse.ArgumentParser(
      prog=name, allow_abbrev=False, epilog=_EXAMPLES.format(name),
      description="Repeat the episodes that something failed in, in this "
      "process: the same seeds, the same actions. An environment's error comes "
      "out as itself, for a debugger to stop at.",
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "crash", metavar="CRASH_DIR", type=pathlib.Path,
      help="a folder in RUN_DIR/crashes/")
  parser.add_argument(
      "--film", metavar="FILE.mp4", type=pathlib.Path, help="film what came "
      "before their last steps, instead of taking these (default: no film)")
  args = parser.parse_args(argv)
  if args.film and args.film.suffix != ".mp4":
    parser.error(f"--film must end in .mp4. Received: {args.film}.")
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  faulthandler.enable(sys.__stderr__ or 2)  # Says where native code crashes.
  try:
    crash = crash_folder.load(args.crash.expanduser())
    if not crash.config.env.deterministic:
      raise config_lib.ConfigError(
          f"{args.crash}: there is no repeating what happened, as env.backend "
          f"is {crash.config.env.backend}.")
    make.check(crash.config.env, filmed=args.film is not None)
    print(crash.incident.text.partition("\n")[0], flush=True)
    if not crash.incident.episodes:
      parser.exit(2, "No environment was in the middle of an episode.\n")
    if args.film:
      _film(crash, args.film.expanduser())
    else:
      _repeat(crash)
  except (errors.RunError, config_lib.ConfigError) as error:
    if args.film or isinstance(error, config_lib.ConfigError):
      parser.exit(2, f"{name}: error: {error}\n")
    raise
  return 0


def _repeat(crash: crash_folder.Crash):
  for broken in crash.incident.episodes:
    print(f"Environment {broken.environment}, seed {broken.seed}: "
          f"{len(broken.action)} steps", flush=True)
    _play(crash.config, broken)
  print("All steps were repeated, and nothing failed. What failed then depends "
        "on more than seeds and actions.")


def _film(crash: crash_folder.Crash, path: pathlib.Path):
  tiles = []
  for broken in crash.incident.episodes:
    before = broken._replace(action=broken.action[:-1])
    tiles.append(video.Tile(
        episodes.Episode(broken.seed, before.action,
                         _play(crash.config, before), {}),
        f"environment {broken.environment}"))
  path.parent.mkdir(parents=True, exist_ok=True)
  recording.record([video.Film(str(path), tuple(tiles))], crash.config.env)


def _play(config: config_lib.Config, broken: failure_budget.FailedEpisode) -> float:
  """Play an episode as far as it was played, and return its rewards' sum."""
  score = np.float32(0)
  with batch_env.BatchEnv([make.MakeEnv(config.env)]) as batch:
    batch.reset([broken.seed])
    for action in broken.action:
      score += batch.step(action[None]).reward[0]
  return float(score)
