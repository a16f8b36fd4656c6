"""Films the first falls."""

import pathlib
import sys
import tempfile
from collections.abc import Iterable

from agents.environments.making import make
from agents.environments.workers import pool
from agents.stress import disturbances, experiment
from agents.videos import render_pool, render_worker
from agents.videos import video as video_lib

_PIXELS = 240  # Height of the frames.


def record(falls: Iterable[experiment.Fall], seed: int) -> dict[str, bytes]:
  """Films each fall from the start of its episode, one frame per step.

  Args:
    falls: Falls to film.
    seed: Seed of the run.

  Returns:
    MP4 file of each fall, by the name of the disturbance.

  Raises:
    RenderingFailed: If the environment cannot be rendered.
  """
  films: dict[str, bytes] = {}
  gl_variables = None
  with tempfile.TemporaryDirectory() as folder:
    for fall in falls:
      constructor = make.MakeEnv(fall.env, "rgb_array", seed=seed)
      if gl_variables is None:
        gl_variables = render_pool.find_gl_backend(constructor)
      path = pathlib.Path(folder, f"{fall.name}.mp4")
      video = video_lib.Video(str(path), (video_lib.Tile(fall.episode, caption(fall)),))
      job = render_worker.RenderJob(constructor, [video], _PIXELS, pool.num_cores())
      for _, problem in render_pool.record(job, make.fps(fall.env), gl_variables):
        if problem:
          print(f"Note: {problem}", file=sys.stderr)
      films[fall.name] = path.read_bytes()
  return films


def caption(fall: experiment.Fall) -> str:
  """Returns the condition of a fall, such as "Pushes: 0.5".

  Args:
    fall: Fall to describe.
  """
  return f"{disturbances.DISTURBANCES[fall.name].title}: {fall.level:g}"
