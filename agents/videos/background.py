"""A process that films an episode while others have better things to do."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import threading
import time
from typing import NamedTuple

import cloudpickle
import numpy as np
from PIL import Image

from agents import config as config_lib
from agents.environments.data import mujoco_warnings
from agents.environments.making import make
from agents.videos import encode
from agents.videos import render_pool
from agents.videos import render_worker
from agents.videos import video

_SHARE = 0.03  # Of the time, unless there is nothing else to do.
_SIZE = 200  # Pixels.
_MOST_PICTURES = 1000  # Of longer episodes, every so many-th is drawn.
_GIF_SIZE = 160
_GIF_PICTURES = 40
_GIF_MILLISECONDS = 100  # That each of them is shown.


class Job(NamedTuple):
  """What there is to film."""

  env: config_lib.Env
  film: video.Video


class Done(NamedTuple):
  """What has come of it."""

  gif: video.Gif
  problem: str  # "" for none.


def main(job_fd: int):
  """Film what there is to film, and write a pickled `Done` to the output.

  A byte of input says that nobody needs the time any more. The process ends
  when the input does.

  Args:
    job_fd: File with a pickled `Job`.
  """
  _step_back()
  out = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)
  mujoco_warnings.capture(lambda _: None)  # Training has warned.
  with os.fdopen(job_fd, "rb") as file:
    job: Job = cloudpickle.load(file)
  hurry = threading.Event()
  threading.Thread(target=_listen, args=[hurry], daemon=True).start()
  sequence, pace, problems = _Gif(), _Pace(hurry), []
  constructor = make.MakeEnv(job.env, render_mode="rgb_array")
  every = -(-job.film.length // _MOST_PICTURES)
  def pictures():
    # Drawn right here: another process would take a second to start.
    drawn = render_worker.draw(job.film, constructor, _SIZE, every - 1, every)
    while True:
      try:
        picture = next(drawn)
      except StopIteration as end:
        problems.append(render_pool.differences(job.film, end.value))
        return
      sequence.watch(picture)
      yield picture
      pace.wait()
  encode.encode(job.film, pictures(), make.fps(job.env) / every)
  pickle.dump(Done(sequence.gif(), *problems), out)
  out.close()


class _Gif:
  """Makes a GIF of a few of the pictures of a film."""

  def __init__(self):
    self._pictures: list[Image.Image] = []

  def watch(self, picture: np.ndarray):
    """Take a look at the next picture."""
    image = Image.fromarray(picture)
    image.thumbnail((_GIF_SIZE, _GIF_SIZE))
    self._pictures.append(image.quantize())

  def gif(self) -> video.Gif:
    amount = min(_GIF_PICTURES, len(self._pictures))
    chosen = np.linspace(0, len(self._pictures) - 1, amount).astype(int)
    first, *others = (self._pictures[number] for number in chosen)
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=others,
               duration=_GIF_MILLISECONDS, loop=0)
    return video.Gif(first.width, first.height, file.getvalue())


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
