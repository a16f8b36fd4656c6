"""Encoding uses constant memory and never leaves a partial file."""

import os
import resource

import numpy as np
import pytest

from agents import errors
from agents.videos import encode
from agents.videos import video as video_lib
from tests.videos import decoding


def _resident_bytes() -> int:
  with open("/proc/self/statm") as file:
    return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length(tmp_path):
  video = video_lib.Video(str(tmp_path / "a.mp4"), ())
  sizes = {}

  def frames():
    for index in range(2_000):  # 350 MB.
      if index in (200, 1_999):
        sizes[index] = _resident_bytes()
      yield np.full((240, 240, 3), index % 200, np.uint8)

  encode.encode(video, frames(), 30)
  assert sizes[1_999] - sizes[200] < 40e6
  decoded, _ = decoding.decode(video.path)
  assert len(decoded) == 2_000


def test_failed_rendering_leaves_no_file(tmp_path):
  video = video_lib.Video(str(tmp_path / "a.mp4"), ())

  def frames():
    yield np.zeros((16, 16, 3), np.uint8)
    raise ValueError("No more.")

  with pytest.raises(ValueError, match="No more."):
    encode.encode(video, frames(), 30)
  assert not os.listdir(tmp_path)


@pytest.mark.parametrize("size", [(16, 18), (18, 16)])
def test_frames_of_different_sizes_are_refused(size, tmp_path):
  video = video_lib.Video(str(tmp_path / "a.mp4"), ())
  frames = [np.zeros((*shape, 3), np.uint8) for shape in ((16, 16), size)]
  with pytest.raises(errors.RunError, match=f"16 x 16 and {size[1]} x {size[0]} pixels"):
    encode.encode(video, frames, 30)
  assert not os.listdir(tmp_path)


def test_failure_of_ffmpeg_leaves_no_file(tmp_path):
  video = video_lib.Video(str(tmp_path / "a.mp4"), ())
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))  # Bytes of a file.
  try:
    with pytest.raises(errors.RunError, match="a.mp4 can't be written: ffmpeg encoded 0 of 2 fr"):
      encode.encode(video, [np.zeros((16, 16, 3), np.uint8)] * 2, 30)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
  assert not os.listdir(tmp_path)


def test_frames_without_pixels_are_refused(tmp_path):
  video = video_lib.Video(str(tmp_path / "a.mp4"), ())
  with pytest.raises(errors.RunError, match="of 0 x 0 pixels"):
    encode.encode(video, [np.zeros((0, 0, 3), np.uint8)] * 2, 30)
  assert not os.listdir(tmp_path)
