"""Writes videos to files, and prints the episodes that they show."""

import sys
from collections.abc import Sequence

from agents import config as config_lib
from agents.environments.making import make
from agents.environments.workers import pool
from agents.videos import render_pool, render_worker
from agents.videos import video as video_lib

WIDTH_OF_GRID = 960  # Pixels.
LARGEST_TILE = 480  # Pixels.


def record(videos: Sequence[video_lib.Video], env: config_lib.Env,
           size: int | None = None):
  """Renders videos with all cores, writes them, and prints their episodes.

  Args:
    videos: Videos to write.
    env: Environment that all episodes were played in.
    size: Height of a tile in pixels; None uses the environment's own height,
      or less in a grid.

  Raises:
    RenderingFailed: If the environment cannot be rendered.
  """
  num_columns = max(video.num_columns for video in videos)
  if size is None and num_columns > 1:
    size = min(LARGEST_TILE, WIDTH_OF_GRID // num_columns)
  constructor = make.MakeEnv(env, render_mode="rgb_array")
  job = render_worker.RenderJob(constructor, videos, size, pool.num_cores())
  for video, problem in render_pool.record(
      job, make.fps(env), render_pool.find_gl_backend(constructor)):
    for tile in video.tiles:
      print(f"{video.path}: {tile.caption}: return {tile.episode.score:.1f}, "
            f"{tile.episode.length} steps", flush=True)
    if problem:
      print(f"Note: {problem}", file=sys.stderr)
