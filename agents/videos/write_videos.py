"""Writes videos to files, and prints the episodes that they show."""

import sys
from collections.abc import Sequence

from agents import config as config_lib
from agents.environments.making import make
from agents.environments.workers import pool
from agents.videos import render_pool, render_worker
from agents.videos import video as video_lib

GRID_WIDTH = 960  # Pixels.
MAX_TILE_HEIGHT = 480  # Pixels.


def record(
  videos: Sequence[video_lib.Video], config: config_lib.Config, size: int | None = None
) -> None:
  """Renders videos with all cores, writes them, and prints their episodes.

  Args:
    videos: Videos to write.
    config: Configuration of the run with all episodes.
    size: Height of a tile in pixels. None uses the environment's height for one
      tile, and fits several tiles into `GRID_WIDTH`.

  Raises:
    RenderingFailed: If the environment cannot be rendered.
  """
  num_columns = max(video.num_columns for video in videos)
  if size is None and num_columns > 1:
    size = min(MAX_TILE_HEIGHT, GRID_WIDTH // num_columns)
  constructor = make.MakeEnv(config.env, "rgb_array", seed=config.seed)
  job = render_worker.RenderJob(constructor, videos, size, pool.num_cores())
  for video, problem in render_pool.record(
    job, make.fps(config.env), render_pool.find_gl_backend(constructor)
  ):
    for tile in video.tiles:
      print(
        f"{video.path}: {tile.caption}: return {tile.episode.score:.1f}, "
        f"{tile.episode.length} steps",
        flush=True,
      )
    if problem:
      print(f"Note: {problem}", file=sys.stderr)
