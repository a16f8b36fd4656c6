"""A process that films an episode while others have better things to do."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import sys
import threading
import time
from typing import NamedTuple

import cloudpickle
import numpy as np
from PIL import Image

from agents import config as config_lib
from agents.environments import make
from agents.environments import mujoco_log
from agents.films import artist
from agents.films import encode
from agents.films import film as film_lib
from agents.films import studio

_SHARE = 0.03  # Of the time, unless there is nothing else to do.
_SIZE = 200  # Pixels.
_GIF_SIZE = 160
_GIF_PICTURES = 40
_GIF_MILLISECONDS = 100  # That each of them is shown.


class Job(NamedTuple):
  """What there is to film."""

  env: config_lib.Env
  film: film_lib.Film


class Done(NamedTuple):
  """What has come of it."""

  gif: film_lib.Gif
  problem: str  # "" for none.


def main():
  """Film what comes in through standard input; write `Done` to the output.

  Another byte of input says that nobody needs the time any more. The process
  ends when the input does.
  """
  _step_back()
  out = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)
  mujoco_log.capture(lambda _: None)  # Training has warned.
  job: Job = cloudpickle.load(sys.stdin.buffer)
  hurry = threading.Event()
  threading.Thread(target=_listen, args=[hurry], daemon=True).start()
  sequence, pace, problems = _Gif(job.film), _Pace(hurry), []
  constructor = make.MakeEnv(job.env, render_mode="rgb_array")
  def pictures():
    # Drawn right here: another process would take a second to start.
    drawn = artist.draw(job.film, constructor, _SIZE)
    for number in range(job.film.length):
      picture = next(drawn)
      sequence.watch(number, picture)
      yield picture
      pace.wait()
    try:
      next(drawn)
    except StopIteration as end:
      problems.append(studio.differences(job.film, end.value))
  encode.encode(job.film, pictures(), make.fps(job.env))
  pickle.dump(Done(sequence.gif(), *problems), out)
  out.close()


class _Gif:
  """Makes a GIF of a few of the pictures of a film."""

  def __init__(self, film: film_lib.Film):
    amount = min(_GIF_PICTURES, film.length)
    self._numbers = set(
        np.linspace(0, film.length - 1, amount).astype(int).tolist())
    self._pictures: list[Image.Image] = []

  def watch(self, number: int, picture: np.ndarray):
    """Keep a picture if it is one of those."""
    if number in self._numbers:
      image = Image.fromarray(picture)
      image.thumbnail((_GIF_SIZE, _GIF_SIZE))
      self._pictures.append(image)

  def gif(self) -> film_lib.Gif:
    file = io.BytesIO()
    first, *others = self._pictures
    first.save(file, "GIF", save_all=True, append_images=others,
               duration=_GIF_MILLISECONDS, loop=0)
    return film_lib.Gif(*first.size, file.getvalue())


class _Pace:
  """Waits after each picture, so that drawing takes its share of the time.

  Having the lowest priority is not enough: what the others leave free are the
  moments in which they wait for each other, and whoever uses those finds the
  caches empty afterwards. Who draws waits, too, as nobody takes its pictures.
  """

  def __init__(self, hurry: threading.Event):
    self._hurry = hurry
    self._start = time.monotonic()

  def wait(self):
    took = time.monotonic() - self._start
    self._hurry.wait(took * (1 / _SHARE - 1))
    self._start = time.monotonic()


def _step_back():
  """Take only the time that nobody else wants, as do processes begun here."""
  os.nice(19)
  if hasattr(os, "SCHED_IDLE"):
    with contextlib.suppress(OSError):
      os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _listen(hurry: threading.Event):
  while os.read(0, 1 << 16):
    hurry.set()
  os.killpg(0, signal.SIGKILL)
