"""Process that renders a video during training, at the lowest priority."""

import contextlib
import io
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

import cloudpickle
import numpy as np
from PIL import Image

from agents.environments.data import mujoco_warnings
from agents.environments.making import make
from agents.videos import encode, renderer
from agents.videos import video as video_lib

_TIME_SHARE = 0.03  # Fraction of wall time spent rendering while throttled.
_TILE_HEIGHT = 200  # Pixels.
_MAX_FRAMES = 1000  # Longer episodes are rendered at a lower frame rate.
_GIF_SIZE = 160  # Maximum width and height in pixels.
_GIF_MAX_FRAMES = 40
_GIF_FRAME_DURATION = 100  # Milliseconds.


def main(job_fd: int) -> None:
  """Renders a video, and writes a pickled result to standard output.

  The result is a tuple of a `video.Gif` and the message of
  `VideoRenderer.problem`. A byte on standard input removes the throttle. The
  process ends when its standard input is closed.

  Args:
    job_fd: File descriptor of a pickled tuple of `make.MakeEnv` and
      `video.Video`.
  """
  # Use only idle processor time, in this process and its children.
  os.nice(19)
  if hasattr(os, "SCHED_IDLE"):
    with contextlib.suppress(OSError):
      os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
  out = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)
  mujoco_warnings.capture(lambda _: None)  # Training has printed the warnings.
  with os.fdopen(job_fd, "rb") as file:
    constructor, video = cloudpickle.load(file)
  unthrottled = threading.Event()
  threading.Thread(target=_watch_input, args=[unthrottled], daemon=True).start()
  # Uses no render workers, because a process takes a second to start.
  video_renderer = renderer.VideoRenderer(video, constructor, _TILE_HEIGHT)
  step = -(-video.num_frames // _MAX_FRAMES)
  thumbnails: list[Image.Image] = []

  def frames() -> Iterator[np.ndarray]:
    for frame in _throttle(video_renderer.frames(step - 1, step), unthrottled):
      image = Image.fromarray(frame)
      image.thumbnail((_GIF_SIZE, _GIF_SIZE))
      thumbnails.append(image.quantize())  # Uses a palette, to save memory.
      yield frame

  encode.encode(video, frames(), make.fps(constructor.config) / step)
  pickle.dump((_make_gif(thumbnails), video_renderer.problem()), out)
  out.close()


def _throttle(frames: Iterable[np.ndarray], unthrottled: threading.Event) -> Iterator[np.ndarray]:
  """Yields frames, and pauses after each in proportion to its rendering time.

  The lowest priority is not enough: the cores are idle only while training
  processes wait for each other, and rendering in these moments would evict the
  training data from the CPU caches. ffmpeg pauses, too, because it receives no
  frames meanwhile.
  """
  start = time.monotonic()
  for frame in frames:
    yield frame
    seconds = time.monotonic() - start
    unthrottled.wait(seconds * (1 / _TIME_SHARE - 1))
    start = time.monotonic()


def _make_gif(images: Sequence[Image.Image]) -> video_lib.Gif:
  """Returns a GIF of evenly spaced images."""
  first, *rest = (
    images[int(index)]
    for index in np.linspace(0, len(images) - 1, min(_GIF_MAX_FRAMES, len(images)))
  )
  file = io.BytesIO()
  first.save(file, "GIF", save_all=True, append_images=rest, duration=_GIF_FRAME_DURATION, loop=0)
  return video_lib.Gif(first.width, first.height, file.getvalue())


def _watch_input(unthrottled: threading.Event) -> None:
  """Removes the throttle on input; kills the process group when input ends."""
  while os.read(0, 1 << 16):
    unthrottled.set()
  os.killpg(0, signal.SIGKILL)
