"""Properties of videos and grids."""

import numpy as np
import pytest

from agents.videos import video as video_lib
from tests.videos import canvas


@pytest.mark.parametrize(
  "num_tiles, num_columns", [(1, 1), (2, 2), (4, 2), (5, 3), (9, 3), (10, 4)]
)
def test_grid_is_as_square_as_possible(num_tiles, num_columns):
  tiles = tuple(
    video_lib.Tile(canvas.episode(*[0.0] * (length + 1))) for length in range(num_tiles)
  )
  video = video_lib.Video("a.mp4", tiles)
  assert video.num_columns == num_columns
  assert video.num_frames == num_tiles  # Steps of the longest episode.


def test_episode_without_steps_has_one_frame():
  video = video_lib.Video("a.mp4", (video_lib.Tile(canvas.episode()),))
  assert video.num_frames == 1


def test_partial_file_has_another_name():
  assert video_lib.Video("/a.b/c.mp4", ()).partial_path == "/a.b/c.part.mp4"


@pytest.mark.parametrize("height, width", [(2, 4), (3, 5), (1, 1), (3, 4)])
@pytest.mark.parametrize("num_frames, num_columns", [(1, 1), (3, 2), (5, 3)])
def test_grid_is_filled_row_by_row_and_has_even_size(height, width, num_frames, num_columns):
  frames = [np.full((height, width, 3), index + 1, np.uint8) for index in range(num_frames)]
  grid = video_lib.compose_grid(frames, num_columns)
  num_rows = -(-num_frames // num_columns)
  assert grid.shape == (num_rows * height // 2 * 2, num_columns * width // 2 * 2, 3)
  for y, line in enumerate(grid):
    for x, pixel in enumerate(line):
      index = y // height * num_columns + x // width
      assert pixel.tolist() == [index + 1 if index < num_frames else 0] * 3
