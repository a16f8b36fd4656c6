"""Process that renders a share of the frames of videos.

Each worker replays all episodes, which takes little time compared to rendering,
and renders every `num_workers`-th frame.
"""

import contextlib
import faulthandler
import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import cloudpickle
import gymnasium

from agents.environments.data import mujoco_warnings
from agents.videos import renderer
from agents.videos import video as video_lib


class RenderJob(NamedTuple):
  """Work of one of several render workers."""

  # Builds the environment with the given index; it renders RGB arrays.
  constructor: Callable[[int], gymnasium.Env]
  videos: Sequence[video_lib.Video]
  tile_height: int | None = None  # Pixels; None keeps the environment's height.
  num_workers: int = 1
  worker_index: int = 0  # Also the index of this worker's first frame.


def main() -> None:
  """Renders the job that standard input contains.

  For each video, standard output receives pickles: the frames as uint8 arrays
  of shape [H, W, 3], then the message of `VideoRenderer.problem`.
  """
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent ends this process.
  faulthandler.enable()  # Shows where native code crashes.
  out = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)  # Environments may print; their text must not mix with frames.
  job: RenderJob = cloudpickle.load(sys.stdin.buffer)
  gymnasium.logger.min_level = gymnasium.logger.ERROR
  mujoco_warnings.capture(lambda _: None)  # Training has printed the warnings.
  with contextlib.suppress(BrokenPipeError):  # The parent needs no more frames.
    for video in job.videos:
      video_renderer = renderer.VideoRenderer(video, job.constructor, job.tile_height)
      for frame in video_renderer.frames(job.worker_index, job.num_workers):
        pickle.dump(frame, out, pickle.HIGHEST_PROTOCOL)
        out.flush()
      pickle.dump(video_renderer.problem(), out)
      out.flush()
