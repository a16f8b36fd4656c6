"""Films a learned policy; see --help."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys

from agents import config as config_lib
from agents import errors
from agents.environments import make
from agents.training import quiet
from agents.training import run_folder


def main(argv: list[str] | None = None) -> int:
  parser = _parser()
  args = parser.parse_args(argv)
  if args.num_episodes < 1:
    parser.error("--num_episodes must be at least 1.")
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  outdir = pathlib.Path(args.outdir).expanduser()
  try:
    folder = run_folder.RunFolder(args.logdir)
    make.check(folder.config.env, filmed=True)
    outdir.mkdir(parents=True, exist_ok=True)
    with quiet.quiet_imports():
      from agents import build
      from agents import film
      # What learned it does not matter here.
      build.setup(folder.config.override({"device": "cpu"}))
    episodes = film.film(
        folder, outdir, args.num_episodes, explore=args.policy == "sampled")
    (outdir / "episodes.json").write_text(json.dumps(episodes, indent=2) + "\n")
  except config_lib.ConfigError as error:
    parser.exit(2, f"visualize.py: error: {error}\n")
  except KeyboardInterrupt:
    return 130
  except (errors.RunError, OSError) as error:
    parser.exit(1, f"visualize.py: {type(error).__name__}: {error}\n")
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      description="Film the policy of a run: one MP4 an episode, one frame an "
      "environment step.", allow_abbrev=False)
  parser.add_argument(
      "--logdir", metavar="RUN_DIR", required=True,
      help="run folder; its newest checkpoint is filmed")
  parser.add_argument(
      "--outdir", metavar="DIR", required=True,
      help="where the films and episodes.json are written")
  parser.add_argument(
      "--num_episodes", metavar="N", type=int, default=5,
      help="number of films (default: 5)")
  parser.add_argument(
      "--policy", choices=("mean", "sampled"), default="mean",
      help="take the mean action, or sample as in training (default: mean)")
  return parser


if __name__ == "__main__":
  sys.exit(main())
