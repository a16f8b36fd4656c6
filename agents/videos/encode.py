"""Writes pictures to a film as they come."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

import imageio_ffmpeg
import numpy as np

from agents.videos import video


def encode(film: video.Video, pictures: Iterable[np.ndarray], fps: float):
  """Write a film, complete or not at all.

  Memory does not grow with the number of pictures.

  Args:
    film: Says where to.
    pictures: Arrays of shape [H, W, 3] and type uint8, of even sizes.
    fps: Pictures a second.
  """
  writer = None
  try:
    for picture in pictures:
      if writer is None:
        height, width, _ = picture.shape
        writer = imageio_ffmpeg.write_frames(
            film.partial_path, (width, height), fps=fps, codec="libx264",
            macro_block_size=2, ffmpeg_log_level="error")
        writer.send(None)
      writer.send(picture)
    assert writer is not None
    writer.close()
    os.replace(film.partial_path, film.path)
  finally:
    if writer is not None:
      writer.close()
    with contextlib.suppress(FileNotFoundError):
      os.unlink(film.partial_path)
