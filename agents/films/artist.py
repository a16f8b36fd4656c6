"""A process that draws its share of the pictures of films.

Several of them take turns, picture by picture: every one plays the episodes
again for itself, which takes little time beside drawing them.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import cloudpickle
import gymnasium

from agents.environments import mujoco_log
from agents.films import film as film_lib
from agents.films import scene

# Height and width of a picture whose bytes follow; or 0 and the number of bytes
# of what is to be said behind the last one: score and steps of each episode.
HEADER = struct.Struct("!II")


class Job(NamedTuple):
  """What an artist is sent."""

  constructor: Callable[[], gymnasium.Env]
  films: Sequence[film_lib.Film]
  size: int | None  # Height of a tile in pixels; None: the environment's own.
  number: int  # Of this artist.
  amount: int  # Of all artists.


def main():
  """Draw what comes in through standard input, and write it to the output."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Who asked decides.
  out = os.fdopen(os.dup(1), "wb", buffering=0)
  os.dup2(2, 1)  # What environments print must not get in between.
  job = cloudpickle.load(sys.stdin.buffer)
  gymnasium.logger.min_level = gymnasium.logger.ERROR
  mujoco_log.capture(lambda _: None)  # Training has warned.
  try:
    for film in job.films:
      _draw(film, job, out)
  except BrokenPipeError:
    pass  # Nobody is looking any more.


def _draw(film: film_lib.Film, job: Job, out):
  scenes = []
  try:
    for tile in film.tiles:
      scenes.append(scene.Scene(job.constructor, tile, job.size))
    for number in range(film.length):
      for one in scenes:
        one.advance(number + 1)
      if number % job.amount != job.number:
        continue
      picture = film_lib.compose(
          [one.picture() for one in scenes], film.columns)
      _write(out, HEADER.pack(*picture.shape[:2]) + picture.tobytes())
    last = json.dumps([(float(one.score), one.steps) for one in scenes])
    _write(out, HEADER.pack(0, len(last)) + last.encode())
  finally:
    for one in scenes:
      one.close()


def _write(out, data: bytes):
  view = memoryview(data)
  while view:
    view = view[out.write(view):]
