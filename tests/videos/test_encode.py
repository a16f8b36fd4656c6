import os

import numpy as np
import pytest

from agents.videos import encode
from agents.videos import video
from tests.videos import decoding


def _resident_bytes() -> int:
  with open("/proc/self/statm") as file:
    return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length(tmp_path):
  film = video.Video(str(tmp_path / "a.mp4"), ())
  sizes = {}
  def pictures():
    for number in range(2_000):  # 350 MB.
      if number in (200, 1_999):
        sizes[number] = _resident_bytes()
      yield np.full((240, 240, 3), number % 200, np.uint8)
  encode.encode(film, pictures(), 30)
  assert sizes[1_999] - sizes[200] < 40e6
  frames, _ = decoding.decode(film.path)
  assert len(frames) == 2_000


def test_what_fails_leaves_nothing(tmp_path):
  film = video.Video(str(tmp_path / "a.mp4"), ())
  def pictures():
    yield np.zeros((16, 16, 3), np.uint8)
    raise ValueError("No more.")
  with pytest.raises(ValueError, match="No more."):
    encode.encode(film, pictures(), 30)
  assert not os.listdir(tmp_path)
