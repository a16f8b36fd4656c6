"""The contents of a video: episodes side by side, replayed from actions."""

import math
from typing import NamedTuple

import numpy as np

from agents.environments.data import episode_data


class Tile(NamedTuple):
  """One episode in a video, and the caption above it."""

  episode: episode_data.Episode
  caption: str = ""


class Video(NamedTuple):
  """One MP4 file that shows episodes in a grid, row by row.

  A tile shows the last frame of its episode until the longest episode ends.
  """

  path: str
  tiles: tuple[Tile, ...]

  @property
  def partial_path(self) -> str:
    """Path of the file while it is being written."""
    return f"{self.path.removesuffix('.mp4')}.part.mp4"

  @property
  def num_frames(self) -> int:
    """Number of frames: one per step of the longest episode, at least 1."""
    return max(1, *(tile.episode.length for tile in self.tiles))

  @property
  def num_columns(self) -> int:
    """Number of columns of the grid."""
    return math.ceil(math.sqrt(len(self.tiles)))


class Gif(NamedTuple):
  """A small animation for TensorBoard."""

  width: int  # Pixels.
  height: int  # Pixels.
  data: bytes  # Content of a GIF file.


def compose_grid(frames: list[np.ndarray], num_columns: int) -> np.ndarray:
  """Arranges frames in a grid, row by row; empty tiles are black.

  Args:
    frames: K uint8 arrays of shape [H, W, 3].
    num_columns: Number of columns of the grid.

  Returns:
    uint8 array of shape [rows * H, columns * W, 3]. Odd sizes lose one pixel,
    because H.264 requires even sizes.
  """
  height, width, _ = frames[0].shape
  num_rows = -(-len(frames) // num_columns)
  tiles = np.zeros((num_rows * num_columns, height, width, 3), np.uint8)
  tiles[: len(frames)] = frames
  grid = tiles.reshape(num_rows, num_columns, height, width, 3).swapaxes(1, 2)
  grid = grid.reshape(num_rows * height, num_columns * width, 3)
  return np.ascontiguousarray(grid[: len(grid) // 2 * 2, : grid.shape[1] // 2 * 2])
