"""A process that films an episode while others have better things to do."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import sys
import threading
from typing import NamedTuple

import cloudpickle
import numpy as np
from PIL import Image

from agents import config as config_lib
from agents.environments import make
from agents.environments import mujoco_log
from agents.films import film as film_lib
from agents.films import studio

_SIZE = 240  # Pixels.
_GIF_SIZE = 160
_GIF_PICTURES = 40
_GIF_MILLISECONDS = 100  # That each of them is shown.


class Job(NamedTuple):
  """What there is to film."""

  env: config_lib.Env
  film: film_lib.Film


def main():
  """Film what comes in through standard input; write a `Gif` to the output.

  What is wrong with it is written to standard error. The process ends, with all
  that draw for it, when standard input does.
  """
  _step_back()
  out = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)
  mujoco_log.capture(lambda _: None)  # Training has warned.
  job: Job = cloudpickle.load(sys.stdin.buffer)
  threading.Thread(target=_end_with_input, daemon=True).start()
  film, constructor = job.film, make.MakeEnv(
      job.env, render_mode="rgb_array")
  sequence = _Gif(film)
  problems = [problem for _, problem in studio.Studio(
      constructor, _SIZE).record([film], make.fps(job.env), sequence.watch)]
  pickle.dump(sequence.gif(), out)
  out.close()
  print(*filter(None, problems), sep="\n", end="", file=sys.stderr)


class _Gif:
  """Makes a GIF of a few of the pictures of a film."""

  def __init__(self, film: film_lib.Film):
    amount = min(_GIF_PICTURES, film.length)
    self._numbers = set(
        np.linspace(0, film.length - 1, amount).astype(int).tolist())
    self._pictures: list[Image.Image] = []

  def watch(self, film: film_lib.Film, number: int, picture: np.ndarray):
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


def _step_back():
  """Take only the time that nobody else wants, as do processes begun here."""
  os.nice(19)
  if hasattr(os, "SCHED_IDLE"):
    with contextlib.suppress(OSError):
      os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _end_with_input():
  while os.read(0, 1 << 16):
    pass
  os.killpg(0, signal.SIGKILL)
