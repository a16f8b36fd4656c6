"""A process that draws its share of the pictures of films.

Several of them take turns, picture by picture: every one plays the episodes
again for itself, which takes little time beside drawing them.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
from typing import NamedTuple

import cloudpickle
import gymnasium
import numpy as np

from agents.environments.data import mujoco_warnings
from agents.videos import renderer
from agents.videos import video

# Height and width of a picture whose bytes follow; or 0 and the number of bytes
# of what is to be said behind the last one: score and steps of each episode.
HEADER = struct.Struct("!II")


class Job(NamedTuple):
  """What an artist is sent."""

  constructor: Callable[[], gymnasium.Env]
  films: Sequence[video.Video]
  size: int | None  # Height of a tile in pixels; None: the environment's own.
  number: int  # Of this artist.
  amount: int  # Of all artists.


def main():
  """Draw what comes in through standard input, and write it to the output."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Who asked decides.
  faulthandler.enable()  # Says where native code crashes.
  out = os.fdopen(os.dup(1), "wb", buffering=0)
  os.dup2(2, 1)  # What environments print must not get in between.
  job = cloudpickle.load(sys.stdin.buffer)
  gymnasium.logger.min_level = gymnasium.logger.ERROR
  mujoco_warnings.capture(lambda _: None)  # Training has warned.
  try:
    for film in job.films:
      _send(film, job, out)
  except BrokenPipeError:
    pass  # Nobody is looking any more.


def draw(film: video.Video, constructor: Callable[[], gymnasium.Env],
         size: int | None, number: int = 0, amount: int = 1
         ) -> Generator[np.ndarray, None, list[tuple[float, int]]]:
  """Play a film's episodes again and draw every picture, or one's share.

  Args:
    film: What to draw.
    constructor: Builds the environment, to be drawn as an array.
    size: Height of a tile in pixels; None leaves it to the environment.
    number: Of this artist.
    amount: Of all artists, who take turns.
  Yields:
    Pictures of shape [H, W, 3] and type uint8, of even sizes.
  Returns:
    Score and steps of each episode.
  """
  scenes = []
  try:
    for tile in film.tiles:
      scenes.append(renderer.Renderer(constructor, tile, size))
    for picture in range(film.length):
      for one in scenes:
        one.advance(picture + 1)
      if picture % amount == number:
        yield video.compose([one.picture() for one in scenes], film.columns)
    return [(float(one.score), one.steps) for one in scenes]
  finally:
    for one in scenes:
      one.close()


def _send(film: video.Video, job: Job, out):
  pictures = draw(film, job.constructor, job.size, job.number, job.amount)
  while True:
    try:
      picture = next(pictures)
    except StopIteration as end:
      last = json.dumps(end.value).encode()
      _write(out, HEADER.pack(0, len(last)) + last)
      return
    _write(out, HEADER.pack(*picture.shape[:2]) + picture.tobytes())


def _write(out, data: bytes):
  view = memoryview(data)
  while view:
    view = view[out.write(view):]
