"""Decodes video files."""

import imageio_ffmpeg
import numpy as np


def decode(path):
  """Returns frames of shape [N, height, width, 3] and the file's metadata."""
  reader = imageio_ffmpeg.read_frames(str(path))
  meta = next(reader)
  width, height = meta["size"]
  frames = [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]
  return np.array(frames), meta
