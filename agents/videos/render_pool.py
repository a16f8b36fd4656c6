"""Has films drawn by several processes, and writes them to files."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import cloudpickle
import gymnasium
import numpy as np

from agents import errors
from agents.environments.data import episodes
from agents.environments.workers import process
from agents.videos import encode
from agents.videos import render_worker
from agents.videos import video

# For processes that draw, each with one thread and without a display.
VARIABLES = {"SDL_VIDEODRIVER": "dummy", "LP_NUM_THREADS": "1"}
_PACKAGES = {"egl": "libegl1 libgl1", "osmesa": "libosmesa6"}
_MOST_CRASHES = 2  # Of native code, such as a driver's, while films are drawn.
_NOTHING = video.Video("", (video.Tile(
    episodes.Episode(0, np.zeros(0), 0.0, {})),))


class RenderingFailed(errors.RunError):
  """The environment can't be drawn; the message says why."""


class _Crashed(RenderingFailed):
  """Native code has ended a process."""


class RenderPool:
  """Draws films of one environment.

  Args:
    constructor: Builds it, to be drawn as an array.
    size: Height of a tile in pixels; None leaves it to the environment.
    amount: Processes that draw.
    variables: What `backend` has found out for them.
  """

  def __init__(self, constructor: Callable[[], gymnasium.Env],
               size: int | None, amount: int, variables: dict[str, str]):
    self._constructor = constructor
    self._size = size
    self._amount = amount
    self._variables = variables

  def record(self, films: Sequence[video.Video], fps: float
             ) -> Iterator[tuple[video.Video, str]]:
    """Write films, one after the other.

    Args:
      films: What to write where.
      fps: Pictures a second.
    Yields:
      Each film, and what is wrong with it, "" for nothing.
    Raises:
      DrawingFailed: If one can't be drawn.
    """
    done = crashes = 0
    while done < len(films):
      try:
        for finished in self._record(films[done:], fps):
          done += 1
          yield finished
      except _Crashed:
        crashes += 1
        if crashes > _MOST_CRASHES:
          raise

  def _record(self, films: Sequence[video.Video], fps: float
              ) -> Iterator[tuple[video.Video, str]]:
    """The same until a process crashes."""
    amount = min(self._amount, max(film.length for film in films))
    with contextlib.ExitStack() as stack:
      artists = [stack.enter_context(_Artist(render_worker.Job(
          self._constructor, films, self._size, number, amount),
          self._variables)) for number in range(amount)]
      for film in films:
        encode.encode(film, (
            artists[number % amount].picture() for number in range(
                film.length)), fps)
        played = [artist.last_words() for artist in artists]
        yield film, differences(film, played[0])


class _Artist:
  """Context with a process that draws."""

  def __init__(self, job: render_worker.Job, variables: dict[str, str]):
    self._errors = tempfile.TemporaryFile()
    self._process = process.launch(
        "agents.videos.render_worker", (), {**VARIABLES, **variables},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
    assert self._process.stdin and self._process.stdout
    self._pictures = self._process.stdout
    try:
      with self._process.stdin as stdin:
        stdin.write(cloudpickle.dumps(job))
    except BrokenPipeError:
      pass  # Reading will tell.

  def picture(self) -> np.ndarray:
    """Return the next picture, [H, W, 3] uint8."""
    height, width = render_worker.HEADER.unpack(
        self._read(render_worker.HEADER.size))
    data = self._read(height * width * 3)
    return np.frombuffer(data, np.uint8).reshape(height, width, 3)

  def last_words(self) -> list[tuple[float, int]]:
    """Return score and steps of each episode of the film that is finished."""
    _, size = render_worker.HEADER.unpack(self._read(render_worker.HEADER.size))
    return json.loads(self._read(size))

  def _read(self, size: int) -> bytes:
    data = self._pictures.read(size)
    if len(data) < size:
      code = self._process.wait()
      self._errors.seek(0)
      said = self._errors.read().decode(errors="replace").strip()
      raise (_Crashed if code < 0 else RenderingFailed)(
          said or f"The process ended with code {code}.")
    return data

  def __enter__(self) -> _Artist:
    return self

  def __exit__(self, *_):
    self._pictures.close()
    self._process.kill()
    self._process.wait()
    self._errors.close()


def find_gl_backend(constructor: Callable[[], gymnasium.Env]) -> dict[str, str]:
  """Return environment variables with which a picture could be drawn.

  Raises:
    DrawingFailed: If none could.
  """
  if sys.platform != "linux":
    choices: list[str | None] = [None]
  elif chosen := os.environ.get("MUJOCO_GL"):
    choices = [chosen]
  else:
    choices = ["egl", "osmesa"]
  said = []
  for choice in choices:
    variables = {"MUJOCO_GL": choice} if choice else {}
    try:
      with _Artist(render_worker.Job(constructor, [_NOTHING], None, 0, 1),
                   variables) as artist:
        artist.picture()
      return variables
    except RenderingFailed as error:
      said.append(str(error))
  if any("mujoco" in text.lower() for text in said):
    packages = " or ".join(f"`apt-get install {names}` (for {choice})"
                           for choice, names in _PACKAGES.items())
    said.append("MuJoCo draws with what MUJOCO_GL names; on Debian and Ubuntu, "
                f"{packages} brings what it needs.")
    said[:-1] = [f"With MUJOCO_GL={choice or 'unset'}: {text}"
                 for choice, text in zip(choices, said)]
  else:  # Whatever draws, so it is the environment's own.
    said = said[:1]
  raise RenderingFailed("\n".join(["The environment can't be drawn.", *said]))


def differences(film: video.Video, played: list[tuple[float, int]]) -> str:
  """Say where playing again did not lead to the same score."""
  for number, (tile, (score, steps)) in enumerate(zip(film.tiles, played)):
    before = tile.episode.score, tile.episode.length
    if (score, steps) != before:
      return (
          f"The environment does not repeat itself: episode {number}, seed "
          f"{tile.episode.seed}, made {score:.1f} in {steps} steps when it was "
          f"filmed, {before[0]:.1f} in {before[1]} when it was played.")
  return ""
