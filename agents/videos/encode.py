"""Encodes frames as an MP4 file while they are rendered."""

import contextlib
import itertools
import os
from collections.abc import Iterable

import imageio_ffmpeg
import numpy as np

from agents import errors
from agents.videos import video as video_lib


def encode(video: video_lib.Video, frames: Iterable[np.ndarray], fps: float) -> None:
  """Writes a complete video file, or no file if rendering fails.

  Memory use does not grow with the number of frames.

  Args:
    video: Video whose `path` is written.
    frames: uint8 arrays of shape [H, W, 3]; H and W are even.
    fps: Frames per second.

  Raises:
    RunError: If the frames have different sizes, or ffmpeg fails.
  """
  frames = iter(frames)
  try:
    first = next(frames)
    writer = imageio_ffmpeg.write_frames(
      video.partial_path,
      (first.shape[1], first.shape[0]),
      fps=fps,
      codec="libx264",
      macro_block_size=2,
      ffmpeg_log_level="error",
    )
    with contextlib.closing(writer):
      writer.send(None)
      num_frames = 0
      for frame in itertools.chain([first], frames):
        if frame.shape != first.shape:
          raise errors.RunError(
            f"{video.path}: render() returned images of different sizes: {_size(first)} and "
            f"{_size(frame)} pixels."
          )
        writer.send(frame)
        num_frames += 1
    # The writer does not report a failure of ffmpeg.
    if (found := _num_frames(video.partial_path)) != num_frames:
      raise errors.RunError(
        f"{video.path} can't be written: ffmpeg encoded {found} of {num_frames} frames of "
        f"{_size(first)} pixels. Is the disk full, or are the frames too small?"
      )
    os.replace(video.partial_path, video.path)
  finally:
    with contextlib.suppress(FileNotFoundError):
      os.unlink(video.partial_path)


def _num_frames(path: str) -> int:
  """Returns the number of frames of a video file; 0 if it cannot be decoded."""
  try:
    return imageio_ffmpeg.count_frames_and_secs(path)[0]
  except RuntimeError:
    return 0


def _size(frame: np.ndarray) -> str:
  return f"{frame.shape[1]} x {frame.shape[0]}"
