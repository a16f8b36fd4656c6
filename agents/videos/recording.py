"""Writes films to files and tells about them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agents import config as config_lib
from agents.environments.making import make
from agents.environments.workers import pool
from agents.videos import render_pool
from agents.videos import video

WIDTH_OF_GRID = 960  # Pixels.
LARGEST_TILE = 480


def record(films: Sequence[video.Video], env: config_lib.Env,
           size: int | None = None):
  """Draw films with all cores, write them, and tell about each episode.

  Args:
    films: What to write where.
    env: What is played in them.
    size: Height of a tile in pixels; by default the environment's own, less
      in a grid.
  Raises:
    DrawingFailed: If the environment can't be drawn.
  """
  columns = max(film.columns for film in films)
  if size is None and columns > 1:
    size = min(LARGEST_TILE, WIDTH_OF_GRID // columns)
  constructor = make.MakeEnv(env, render_mode="rgb_array")
  studio = render_pool.RenderPool(
      constructor, size, pool.cores(), render_pool.find_gl_backend(constructor))
  for film, problem in studio.record(films, make.fps(env)):
    for tile in film.tiles:
      print(f"{film.path}: {tile.caption}: return {tile.episode.score:.1f}, "
            f"{tile.episode.length} steps", flush=True)
    if problem:
      print(f"Note: {problem}", file=sys.stderr)
