import numpy as np
import pytest

from agents.videos import video
from tests.videos import canvas


@pytest.mark.parametrize("amount, columns", [
    (1, 1), (2, 2), (4, 2), (5, 3), (9, 3), (10, 4)])
def test_tiles_lie_in_a_square(amount, columns):
  tiles = tuple(video.Tile(canvas.episode(*[0.0] * (length + 1)))
                for length in range(amount))
  made = video.Video("a.mp4", tiles)
  assert made.columns == columns
  assert made.length == amount


def test_an_episode_without_a_step_is_one_picture():
  assert video.Video("a.mp4", (video.Tile(canvas.episode()),)).length == 1


def test_what_grows_has_another_name():
  assert video.Video("/a.b/c.mp4", ()).partial_path == "/a.b/c.part.mp4"


@pytest.mark.parametrize("height, width", [(2, 4), (3, 5), (1, 1), (3, 4)])
@pytest.mark.parametrize("amount, columns", [(1, 1), (3, 2), (5, 3)])
def test_grid_is_row_by_row_and_even(height, width, amount, columns):
  pictures = [np.full((height, width, 3), number + 1, np.uint8)
              for number in range(amount)]
  grid = video.compose(pictures, columns)
  rows = -(-amount // columns)
  assert grid.shape == (
      rows * height // 2 * 2, columns * width // 2 * 2, 3)
  for y, line in enumerate(grid):
    for x, pixel in enumerate(line):
      number = y // height * columns + x // width
      assert pixel.tolist() == [number + 1 if number < amount else 0] * 3
