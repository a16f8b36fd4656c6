"""What a film shows: episodes side by side, each a seed and its actions."""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np

from agents.environments.data import episodes


class Tile(NamedTuple):
  """One episode and what to write above it."""

  episode: episodes.Episode
  caption: str = ""


class Video(NamedTuple):
  """One file. Shorter episodes wait at their last picture for the longest."""

  path: str
  tiles: tuple[Tile, ...]

  @property
  def partial_path(self) -> str:
    """Where the file grows until it is complete."""
    return f"{os.path.splitext(self.path)[0]}.part.mp4"

  @property
  def length(self) -> int:
    """Pictures, one after each step of the longest episode."""
    return max(1, *(tile.episode.length for tile in self.tiles))

  @property
  def columns(self) -> int:
    """Of the grid that the tiles lie in, row by row."""
    return math.ceil(math.sqrt(len(self.tiles)))


class Gif(NamedTuple):
  """A small moving picture."""

  width: int
  height: int
  data: bytes


def compose(pictures: list[np.ndarray], columns: int) -> np.ndarray:
  """Lay pictures of shape [H, W, 3] out in a grid, black where there is none.

  Height and width of the result are even, as H.264 wants them.
  """
  height, width, _ = pictures[0].shape
  rows = -(-len(pictures) // columns)
  grid = np.zeros(
      (2 * (rows * height // 2), 2 * (columns * width // 2), 3), np.uint8)
  for number, picture in enumerate(pictures):
    row, column = divmod(number, columns)
    place = grid[row * height:(row + 1) * height,
                 column * width:(column + 1) * width]
    place[...] = picture[:place.shape[0], :place.shape[1]]
  return grid
