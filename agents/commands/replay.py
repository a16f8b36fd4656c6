"""Repeat the failed episodes of a run in this process.

The command uses the same seeds and actions as the run. It raises the
environment's own error, so that a debugger stops where the environment failed.

examples:
  %(prog)s ~/logdir/20260101T120000-ant
  %(prog)s ~/logdir/20260101T120000-ant/crashes/000000012288-1 --film crash.mp4
  python -m pdb -m agents replay ~/logdir/20260101T120000-ant/crashes/*-1
"""

import argparse
import faulthandler
import functools
import pathlib
import sys
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.commands import parsing
from agents.commands.shared import json_output
from agents.environments import batch_env
from agents.environments.data import episode_data, failure_budget
from agents.environments.making import make
from agents.training.faults import crash_folder
from agents.videos import video, write_videos


class ReplayedEpisode(NamedTuple):
  """An episode that was repeated without a failure."""

  environment: int  # Index of the environment in the batch.
  seed: int
  steps: int
  score: float  # Sum of the rewards of these steps.


def main(argv: list[str] | None = None) -> int:
  """Runs the command `replay`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.

  Raises:
    Exception: Error of the environment, so that a debugger stops at the cause.
  """
  parser = parsing.make_parser("replay", __doc__)
  option = functools.partial(parsing.option, parser)
  option(
    "path RUN_DIR",
    "run folder, whose newest crash folder is used, or a folder in RUN_DIR/crashes/",
    type=pathlib.Path,
  )
  option(
    "--film FILE.mp4",
    "render a video of the episodes without the last step, which failed (default: no video)",
    type=pathlib.Path,
  )
  parsing.add_code(parser)
  parsing.add_json(parser, "the failure, and the episodes if they do not fail again,")
  args = parser.parse_args(argv)
  if args.film and args.film.suffix != ".mp4":
    parser.error(f"--film must end in .mp4. Received: {args.film}.")
  faulthandler.enable(sys.__stderr__ or 2)  # Reports crashes of native code.
  try:
    with json_output.only_result(args):
      _run(args)
  except (errors.RunError, config_lib.ConfigError) as error:
    if args.film or isinstance(error, config_lib.ConfigError):
      parser.exit(2, f"{parser.prog}: error: {error}\n")
    raise
  return 0


def _run(args: argparse.Namespace) -> None:
  """Repeats or films the episodes; stores the result."""
  path = crash_folder.find(args.path.expanduser())
  crash = crash_folder.load(path, args.code)
  if not crash.config.env.deterministic:
    raise config_lib.ConfigError(
      f"{path}: the episodes can't be repeated, as env.backend is {crash.config.env.backend}."
    )
  make.check(crash.config.env, needs_rendering=args.film is not None)
  failure = crash.failure.text.partition("\n")[0]
  print(failure, flush=True)
  if not crash.failure.episodes:
    raise config_lib.ConfigError("No environment was in the middle of an episode.")
  film = args.film and args.film.expanduser()
  episodes = render(crash, film) if film else repeat(crash)
  args.result = {"crash": path, "failure": failure, "episodes": episodes, "film": film}


def repeat(crash: crash_folder.Crash) -> list[ReplayedEpisode]:
  """Repeats all steps of the failed episodes.

  Args:
    crash: Loaded crash folder.

  Returns:
    The repeated episodes.

  Raises:
    Exception: Error of the environment, if the environment fails again.
  """
  replayed = []
  for episode in crash.failure.episodes:
    print(
      f"Environment {episode.environment}, seed {episode.seed}: {len(episode.action)} steps",
      flush=True,
    )
    replayed.append(_play(crash.config, episode))
  print(
    "All steps were repeated without a failure. The original failure did "
    "not depend only on seeds and actions."
  )
  return replayed


def render(crash: crash_folder.Crash, path: pathlib.Path) -> list[ReplayedEpisode]:
  """Renders a video of the failed episodes without the last step of each.

  Args:
    crash: Loaded crash folder.
    path: MP4 file to write.

  Returns:
    The episodes, without the last step of each.

  Raises:
    RenderingFailed: If the environment cannot be rendered.
  """
  played = [
    (episode, _play(crash.config, episode._replace(action=episode.action[:-1])))
    for episode in crash.failure.episodes
  ]
  tiles = tuple(
    video.Tile(
      episode_data.Episode(
        episode.seed, episode.action[:-1], replayed.score, {}, episode.environment
      ),
      f"environment {episode.environment}",
    )
    for episode, replayed in played
  )
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise config_lib.ConfigError(f"--film {path}: {error}") from None
  write_videos.record([video.Video(str(path), tiles)], crash.config)
  return [replayed for _, replayed in played]


def _play(config: config_lib.Config, episode: failure_budget.FailedEpisode) -> ReplayedEpisode:
  """Repeats the actions of an episode."""
  score = np.float32(0)
  constructor = make.MakeEnv(config.env, seed=config.seed, index=episode.environment)
  with batch_env.BatchEnv([constructor]) as batch:
    batch.reset([episode.seed])
    for action in episode.action:
      score += batch.step(action[None]).reward[0]
  return ReplayedEpisode(episode.environment, episode.seed, len(episode.action), float(score))
