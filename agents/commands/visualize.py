"""Render the policy of a run as MP4 videos, one frame per environment step.

examples:
  %(prog)s ~/logdir --num-episodes 1
  %(prog)s ~/logdir --num-episodes 4 --num-agents 4 --grid
  %(prog)s ~/logdir --checkpoint all
  %(prog)s ~/logdir --episode -1
  %(prog)s --pretrained cheetah --num-episodes 1
  %(prog)s ~/logdir --commands "1,0,0 for 3s; 0,0,1 for 2s"
"""

import argparse
import functools
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.commands import parsing
from agents.commands.shared import drive_robot
from agents.environments.making import make
from agents.robots import drive
from agents.training.monitoring import quiet_imports, recent_episodes
from agents.training.run_folder import atomic_write, checkpoint, run_folder
from agents.videos import video, write_videos
from agents.zoo import entries


class Rollouts(NamedTuple):
  """Episodes of a learned policy, and their layout in the videos."""

  # Name or step of a checkpoint, or "all"; None selects the newest checkpoint.
  checkpoint: str | None = None
  # Number of episodes per checkpoint; None plays 5, or 1 for "all" checkpoints.
  num_episodes: int | None = None
  # Number of environments that step together.
  num_agents: int = 1
  # Whether to sample actions instead of taking the mean action.
  sampled: bool = False
  # Whether to show all episodes side by side in one video.
  grid: bool = False


def main(argv: list[str] | None = None) -> int:
  """Runs the command `visualize`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  with parsing.parsed(_parser(), argv) as args:
    _check_arguments(args)
    folder = run_folder.find(_run(args), args.code)
    # The folder of the zoo may belong to another user.
    parts = ("videos", folder.path.name) if args.pretrained else (folder.path, "videos")
    outdir = pathlib.Path(args.outdir or pathlib.Path(*parts)).expanduser()
    rollouts = Rollouts(
      args.checkpoint, args.num_episodes, args.num_agents or 1, args.policy == "sampled", args.grid
    )
    if args.commands or args.drive:
      path = checkpoint.find(folder.checkpoints, args.checkpoint)
      film = None if args.drive else outdir / "commands.mp4"
      args.result = {"phases": drive_robot.play(folder, path, args.commands, film, args.size)}
      return 0
    if args.episode is None:
      episodes = render_policy(folder, outdir, rollouts, args.size)
    else:
      episodes = render_training_episode(folder, outdir, args.episode, args.size)
    args.result = {"episodes": episodes}
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = parsing.make_parser("visualize", __doc__)
  group = parser.add_argument_group("input and output")
  parsing.add_run(group, "--logdir", "run folder")
  parsing.add_code(group)
  parsing.add_json(parser, "paths, returns and lengths of the episodes")
  files = functools.partial(parsing.option, group)
  files("--pretrained NAME", "policy of the zoo instead of a run, such as cheetah (no default)")
  files(
    "--outdir DIR",
    "folder for the videos and episodes.json (default: RUN_DIR/videos; with --pretrained, "
    "videos/NAME in the current folder)",
  )
  files(
    "--size PIXELS",
    "height of an episode's frames (default: "
    f"{write_videos.MAX_TILE_HEIGHT} with MuJoCo, and the environment's "
    "own height otherwise; in a grid, at most "
    f"{write_videos.GRID_WIDTH} divided by the number of columns)",
    type=int,
  )
  policy = functools.partial(
    parsing.option, parser.add_argument_group("episodes of a learned policy")
  )
  policy(
    "--num-episodes N", "number of episodes (default: 5, or 1 with --checkpoint all)", type=int
  )
  policy("--num-agents N", "number of environments that step together (default: 1)", type=int)
  policy(
    "--policy",
    "take the mean action, or sample actions as in training (default: mean)",
    choices=("mean", "sampled"),
  )
  policy(
    "--checkpoint NAME",
    "file name or step of a checkpoint; `best` for "
    "the policy with the best evaluation; `all` shows the policies of all "
    "checkpoints side by side, the oldest one first (default: the newest "
    "checkpoint)",
  )
  policy("--grid", "show all episodes side by side in one video (default: one video per episode)")
  parsing.option(
    parser.add_argument_group("an episode of training"),
    "--episode N",
    "index of the training episode to repeat, from 0; -1 repeats the last "
    "recorded one (no default)",
    type=int,
  )
  robot = functools.partial(
    parsing.option, parser.add_argument_group("a robot with velocity commands")
  )
  robot(
    "--commands TEXT",
    'film the robot with these commands, such as "1,0,0 for 3s; 0,0,1 for 2s": forward and left '
    "speed in m/s, turning speed in rad/s (no default)",
  )
  robot("--drive", "open a window in which keys command the robot (default: no window)")
  return parser


def _run(args: argparse.Namespace) -> str | pathlib.Path:
  """Returns the folder with the policy; raises ConfigError unless it is one."""
  run = parsing.run(args)
  if bool(run) == bool(args.pretrained):
    raise config_lib.ConfigError("name a run folder, such as ~/logdir, or a --pretrained policy.")
  return run or entries.find(args.pretrained)


def _check_arguments(args: argparse.Namespace) -> None:
  """Raises ConfigError if arguments are too small or contradict each other."""
  parsing.check_counts(args, "num_episodes", "num_agents", "size")
  if args.commands:
    drive.parse_commands(args.commands)
  for option in ("episode", "num_episodes", "num_agents", "policy", "grid"):
    if (args.commands or args.drive) and getattr(args, option):
      raise config_lib.ConfigError(
        f"{parsing.dashed(option)} can't be combined with --commands or --drive, which play one "
        "episode with the mean action."
      )
  if args.commands and args.drive:
    raise config_lib.ConfigError("use either --commands or --drive.")
  for option in ("num_episodes", "num_agents", "policy", "checkpoint", "grid"):
    if args.episode is not None and getattr(args, option):
      raise config_lib.ConfigError(
        f"{parsing.dashed(option)} can't be combined with --episode, which repeats one episode "
        "of training."
      )
  if args.checkpoint == "all" and args.grid:
    raise config_lib.ConfigError("--checkpoint all always shows a grid; use it without --grid.")


def render_policy(
  folder: run_folder.RunFolder, outdir: pathlib.Path, rollouts: Rollouts, size: int | None = None
) -> list[dict[str, Any]]:
  """Renders episodes of a learned policy, and lists them in episodes.json.

  Args:
    folder: Run folder.
    outdir: Folder for the videos.
    rollouts: Number, policy and layout of the episodes.
    size: Height of an episode's frames in pixels; None takes the default of
      `--size`.

  Returns:
    Path of the video, caption, return and length of each episode.

  Raises:
    ConfigError: If the checkpoint or the render mode does not exist.
    RenderingFailed: If the environment cannot be rendered.
  """
  make.check(folder.config.env, needs_rendering=True)
  listed = _listed_episodes(outdir)
  return _record(folder, _roll_out(folder, outdir, rollouts), size, outdir, listed)


def render_training_episode(
  folder: run_folder.RunFolder, outdir: pathlib.Path, number: int, size: int | None = None
) -> list[dict[str, Any]]:
  """Renders an episode of training, and lists it in episodes.json.

  Args:
    folder: Run folder.
    outdir: Folder for the video.
    number: Index of the episode; negative indices count from the last recorded
      episode.
    size: Height of the frames in pixels; None takes the default of `--size`.

  Raises:
    ConfigError: If no checkpoint contains the episode, or the environment is
      not deterministic.
    RenderingFailed: If the environment cannot be rendered.
  """
  env = folder.config.env
  if not env.deterministic:
    raise config_lib.ConfigError(
      "--episode: episodes of training can't be repeated, as env.backend is "
      f"{env.backend}. Use --num-episodes to render the policy instead."
    )
  make.check(env, needs_rendering=True)
  listed = _listed_episodes(outdir)
  episode = recent_episodes.find(folder.checkpoints, number)
  return _record(folder, [recent_episodes.make_video(episode, outdir)], size, outdir, listed)


def _roll_out(
  folder: run_folder.RunFolder, outdir: pathlib.Path, rollouts: Rollouts
) -> list[video.Video]:
  """Runs the policy and returns the videos to render."""
  timeline = rollouts.checkpoint == "all"
  if timeline:
    paths = checkpoint.paths(folder.checkpoints) or [
      checkpoint.newest(folder.checkpoints)
    ]  # Raises CheckpointError.
  else:
    paths = [checkpoint.find(folder.checkpoints, rollouts.checkpoint)]
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands.shared import rollout_policy

    # Only training needs the device of the run.
    build.setup(folder.config.override({"device": "cpu"}))
  num_episodes = rollouts.num_episodes or (1 if timeline else 5)
  results = rollout_policy.play(folder, paths, num_episodes, rollouts.num_agents, rollouts.sampled)
  rows = [
    [video.Tile(episode, f"after {result.step:,} steps") for episode in result.episodes]
    for result in results
  ]
  prefix = "timeline" if timeline else f"step-{results[0].step}"
  prefix += "-sampled" if rollouts.sampled else ""
  if rollouts.grid:
    return [video.Video(str(outdir / f"{prefix}-grid.mp4"), tuple(rows[0]))]
  return [
    video.Video(str(outdir / f"{prefix}-episode-{number}.mp4"), tiles)
    for number, tiles in enumerate(zip(*rows, strict=True))
  ]


def _listed_episodes(outdir: pathlib.Path) -> list[tuple[str, Any]]:
  """Creates a folder; returns (file name, entry) pairs of episodes.json."""
  path = outdir / "episodes.json"
  try:
    outdir.mkdir(parents=True, exist_ok=True)
    listed = json.loads(path.read_text()) if path.exists() else []
    return [(episode["file"], episode) for episode in listed]
  except OSError as error:
    raise config_lib.ConfigError(f"--outdir {outdir}: {error}") from None
  except (ValueError, TypeError, KeyError, RecursionError):
    raise config_lib.ConfigError(
      f"{path} is damaged; delete it, or select another --outdir."
    ) from None


def _record(
  folder: run_folder.RunFolder,
  videos: Sequence[video.Video],
  size: int | None,
  outdir: pathlib.Path,
  listed: Sequence[tuple[str, Any]],
) -> list[dict[str, Any]]:
  """Renders videos, prints their episodes, and updates episodes.json.

  Returns:
    The entries of the new episodes, with the path of the video.
  """
  files = {os.path.basename(each.path) for each in videos}
  kept = [episode for file, episode in listed if file not in files]
  write_videos.record(videos, folder.config, size)
  rendered: list[dict[str, Any]] = [
    {
      "file": os.path.basename(each.path),
      "caption": tile.caption,
      "return": tile.episode.score,
      "length": tile.episode.length,
    }
    for each in videos
    for tile in each.tiles
  ]
  with atomic_write.open_file(outdir / "episodes.json") as file:
    file.write((json.dumps([*kept, *rendered], indent=2) + "\n").encode())
  return [{**episode, "file": outdir / episode["file"]} for episode in rendered]
