"""Films a learned policy; see --help."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from agents import config as config_lib
from agents.commands import cli
from agents.environments.making import make
from agents.training.monitoring import episode_recorder
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder
from agents.videos import recording
from agents.videos import video

_EXAMPLES = """\
examples:
  {0} --logdir ~/logdir --num_episodes 1
  {0} --logdir ~/logdir --num_episodes 4 --num_agents 4 --grid
  {0} --logdir ~/logdir --checkpoint all
  {0} --logdir ~/logdir --episode -1
"""


def main(argv: list[str] | None = None) -> int:
  parser = _parser()
  args = parser.parse_args(argv)
  for name in ("num_episodes", "num_agents", "size"):
    if getattr(args, name) is not None and getattr(args, name) < 1:
      parser.error(f"--{name} must be at least 1.")
  for flag in ("num_episodes", "num_agents", "policy", "checkpoint", "grid"):
    if args.episode is not None and getattr(args, flag):
      parser.error(f"--episode films one episode as it was played in training; "
                   f"--{flag} can't change that.")
  if args.checkpoint == "all" and args.grid:
    parser.error("--checkpoint all makes a grid of its own, without --grid.")
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  with cli.exit_on_error(parser):
    folder = run_folder.find(args.logdir)
    if args.episode is not None and not folder.config.env.deterministic:
      raise config_lib.ConfigError(
          "--episode: episodes of training can't be played again, as "
          f"env.backend is {folder.config.env.backend}. --num_episodes films "
          "the policy.")
    outdir = pathlib.Path(args.outdir or folder.path / "videos").expanduser()
    make.check(folder.config.env, filmed=True)
    outdir.mkdir(parents=True, exist_ok=True)
    films = (_played(folder, outdir, args) if args.episode is None else
             [episode_recorder.film(episode_recorder.find(
                 folder.checkpoints, args.episode), outdir)])
    _record(folder, films, args.size, outdir)
  return 0


def _parser() -> argparse.ArgumentParser:
  name = cli.command("visualize")
  parser = argparse.ArgumentParser(
      prog=name, description="Film the policy of a run: an MP4 of one picture "
      "an environment step.", epilog=_EXAMPLES.format(name), allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  where = parser.add_argument_group("what to film, and where to")
  where.add_argument(
      "--logdir", metavar="RUN_DIR", required=True, help="run folder; a folder "
      "of runs stands for its newest one with a checkpoint (no default)")
  where.add_argument(
      "--outdir", metavar="DIR", help="where the films and episodes.json are "
      "written (default: RUN_DIR/videos)")
  where.add_argument(
      "--size", metavar="PIXELS", type=int, help="height of an episode's "
      f"picture (default: {recording.LARGEST_TILE} with MuJoCo, the "
      "environment's own with others; less in a grid, "
      f"{recording.WIDTH_OF_GRID} divided by its columns)")
  policy = parser.add_argument_group("episodes of a learned policy")
  policy.add_argument(
      "--num_episodes", metavar="N", type=int, help="number of episodes "
      "(default: 5, or 1 with --checkpoint all)")
  policy.add_argument(
      "--num_agents", metavar="N", type=int, help="environments that play them "
      "side by side (default: 1)")
  policy.add_argument(
      "--policy", choices=("mean", "sampled"), help="take the mean action, or "
      "sample as in training (default: mean)")
  policy.add_argument(
      "--checkpoint", metavar="NAME", help="the policy of this checkpoint, a "
      "file's name or a step; `all` shows the policy at all that are kept side "
      "by side, from the first to the last (default: the newest)")
  policy.add_argument(
      "--grid", action="store_true", help="show all episodes side by side in "
      "one film (default: a film an episode)")
  training = parser.add_argument_group("an episode of training")
  training.add_argument(
      "--episode", metavar="N", type=int, help="play it again as it was played "
      "in training; negative numbers count from the last (default: none)")
  return parser


def _played(folder: run_folder.RunFolder, outdir: pathlib.Path,
            args: argparse.Namespace) -> list[video.Film]:
  """Let the policy play and return what to film of it."""
  together = args.checkpoint == "all"
  paths = (_milestones(folder) if together else [
      checkpoint.named(folder.checkpoints, args.checkpoint)
      if args.checkpoint else checkpoint.newest_whole(folder.checkpoints)])
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands import rollout_policy
    # What learned it does not matter here.
    build.setup(folder.config.override({"device": "cpu"}))
  amount = args.num_episodes or (1 if together else 5)
  played = rollout_policy.play(
      folder, paths, amount, args.num_agents or 1, args.policy == "sampled")
  tiles = [[video.Tile(episode, f"after {step:,} steps")
            for episode in episodes] for step, episodes in played]
  sampled = "-sampled" if args.policy == "sampled" else ""
  if together:
    stem = str(outdir / f"timeline{sampled}-episode")
    return [video.Film(f"{stem}-{number}.mp4", row)
            for number, row in enumerate(zip(*tiles, strict=True))]
  stem = str(outdir / f"step-{played[0].step}{sampled}")
  if args.grid:
    return [video.Film(f"{stem}-grid.mp4", tuple(tiles[0]))]
  return [video.Film(f"{stem}-episode-{number}.mp4", (tile,))
          for number, tile in enumerate(tiles[0])]


def _milestones(folder: run_folder.RunFolder) -> Sequence[pathlib.Path]:
  paths = checkpoint.paths(folder.checkpoints)
  return paths or [checkpoint.newest(folder.checkpoints)]  # Which says why not.


def _record(folder: run_folder.RunFolder, films: list[video.Film],
            size: int | None, outdir: pathlib.Path):
  """Write the films, tell about each, and write episodes.json."""
  path = outdir / "episodes.json"
  try:
    before = json.loads(path.read_text()) if path.exists() else []
    files = {os.path.basename(film.path) for film in films}
    others = [one for one in before if one["file"] not in files]
  except (ValueError, TypeError, KeyError, RecursionError):
    raise config_lib.ConfigError(
        f"{path} is damaged; delete it, or choose another --outdir.") from None
  recording.record(films, folder.config.env, size)
  told: list[dict[str, Any]] = [{
      "file": os.path.basename(film.path), "caption": tile.caption,
      "return": tile.episode.score, "length": tile.episode.length}
      for film in films for tile in film.tiles]
  path.write_text(json.dumps([*others, *told], indent=2) + "\n")
