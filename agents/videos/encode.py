"""Encodes frames as an MP4 file while they are rendered."""

import contextlib
import itertools
import os
from collections.abc import Iterable

import imageio_ffmpeg
import numpy as np

from agents.videos import video as video_lib


def encode(video: video_lib.Video, frames: Iterable[np.ndarray], fps: float) -> None:
  """Writes a complete video file, or no file if rendering fails.

  Memory use does not grow with the number of frames.

  Args:
    video: Video whose `path` is written.
    frames: uint8 arrays of shape [H, W, 3]; H and W are even.
    fps: Frames per second.
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
      for frame in itertools.chain([first], frames):
        writer.send(frame)
    os.replace(video.partial_path, video.path)
  finally:
    with contextlib.suppress(FileNotFoundError):
      os.unlink(video.partial_path)
