"""Renders videos with several processes, and writes them to files."""

import contextlib
import os
import pickle
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import cloudpickle
import gymnasium
import numpy as np

from agents import config as config_lib
from agents import errors
from agents.environments.data import episode_data
from agents.environments.making import make
from agents.environments.workers import process
from agents.videos import encode, render_worker
from agents.videos import video as video_lib

# Environment variables of rendering processes: no display, one thread each.
PROCESS_VARIABLES = {"SDL_VIDEODRIVER": "dummy", "LP_NUM_THREADS": "1"}
_DEBIAN_PACKAGES = {"egl": "libegl1 libgl1", "osmesa": "libosmesa6"}
_MAX_CRASHES = 2  # Crashes of native code, such as drivers, before failure.
_SECONDS_TO_TEST = 60.0  # Limit for each backend to render its first frame.
_SINGLE_FRAME = video_lib.Video(
  "", (video_lib.Tile(episode_data.Episode(0, np.zeros(0), 0.0, {})),)
)


_Result = TypeVar("_Result")


class RenderingFailed(errors.RunError):
  """The environment cannot be rendered; the message gives the reason."""


class _Crashed(RenderingFailed):
  """A signal, such as a segmentation fault, ended a render worker."""


def record(
  job: render_worker.RenderJob, fps: float, gl_variables: dict[str, str]
) -> Iterator[tuple[video_lib.Video, str]]:
  """Writes videos, one after the other, with several processes.

  Args:
    job: Videos, constructor of their environment, and maximum number of
      workers.
    fps: Frames per second.
    gl_variables: Result of `find_gl_backend`.

  Yields:
    Each written video with the message of `VideoRenderer.problem`.

  Raises:
    RenderingFailed: If a video cannot be rendered.
  """
  num_crashes = 0
  while job.videos:
    num_workers = min(job.num_workers, max(video.num_frames for video in job.videos))
    try:
      with contextlib.ExitStack() as stack:
        receive = [
          stack.enter_context(
            _render_worker(job._replace(num_workers=num_workers, worker_index=index), gl_variables)
          )
          for index in range(num_workers)
        ]
        for video in job.videos:
          encode.encode(
            video, (receive[index % num_workers]() for index in range(video.num_frames)), fps
          )
          problems = [receive_problem() for receive_problem in receive]
          job = job._replace(videos=job.videos[1:])
          yield video, problems[0]
    except _Crashed:
      num_crashes += 1
      if num_crashes > _MAX_CRASHES:
        raise


@contextlib.contextmanager
def _render_worker(
  job: render_worker.RenderJob, gl_variables: dict[str, str]
) -> Iterator[Callable[..., Any]]:
  """Runs a worker; yields a function that receives the worker's next object.

  The first call of the function may limit the seconds to wait.
  """
  with tempfile.TemporaryFile() as stderr:
    worker = process.launch(
      "agents.videos.render_worker",
      (),
      {**PROCESS_VARIABLES, **gl_variables},
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=stderr,
    )
    stdin, stdout = worker.stdin, worker.stdout
    assert stdin and stdout

    def receive(seconds: float | None = None) -> Any:
      if seconds:
        poll = select.poll()
        poll.register(stdout, select.POLLIN)
        if not poll.poll(1000 * seconds):
          raise RenderingFailed(f"No frame was rendered within {seconds:g} seconds.")
      try:
        return pickle.load(stdout)
      except (EOFError, pickle.UnpicklingError):
        code = worker.wait()
        stderr.seek(0)
        message = stderr.read().decode(errors="replace").strip()
        raise (_Crashed if code < 0 else RenderingFailed)(
          message or f"The process ended with code {code}."
        ) from None

    try:
      # If the worker has already ended, `receive` reports the reason.
      with contextlib.suppress(BrokenPipeError), stdin:
        stdin.write(cloudpickle.dumps(job))
      yield receive
    finally:
      worker.kill()
      stdout.close()
      # A process that waits for a driver cannot be killed at once.
      with contextlib.suppress(subprocess.TimeoutExpired):
        worker.wait(timeout=5)


def worker_variables(config: config_lib.Config) -> dict[str, str]:
  """Returns the variables with which workers can render observations.

  Args:
    config: Configuration of the run.

  Returns:
    Result of `find_gl_backend`; empty if observations are not rendered.

  Raises:
    RenderingFailed: See `find_gl_backend`.
  """
  return find_gl_backend(make.MakeEnv(config.env)) if config.env.renders else {}


def find_gl_backend(constructor: Callable[[int], gymnasium.Env]) -> dict[str, str]:
  """Finds a value of MUJOCO_GL with which the environment can be rendered.

  Args:
    constructor: Builds the environment with `render_mode="rgb_array"`.

  Returns:
    Environment variables for rendering processes.

  Raises:
    RenderingFailed: If rendering one frame fails with every backend, or takes
      longer than `_SECONDS_TO_TEST`.
  """
  job = render_worker.RenderJob(constructor, [_SINGLE_FRAME])

  def render_frame(variables: dict[str, str]) -> dict[str, str]:
    with _render_worker(job, variables) as receive:
      receive(_SECONDS_TO_TEST)
    return variables

  return with_gl_backend(render_frame)


def with_gl_backend(render: Callable[[dict[str, str]], _Result]) -> _Result:
  """Renders with the first value of MUJOCO_GL that works.

  Args:
    render: Renders in a process with the given environment variables, or raises
      RenderingFailed.

  Returns:
    Result of `render`.

  Raises:
    RenderingFailed: If rendering fails with every backend.
  """
  preset = os.environ.get("MUJOCO_GL")
  backends = [preset] if preset or sys.platform != "linux" else list(_DEBIAN_PACKAGES)
  failures = {}
  for backend in backends:
    try:
      return render({"MUJOCO_GL": backend} if backend else {})
    except RenderingFailed as error:
      failures[backend] = str(error)
  # Without MuJoCo, the backend does not matter: all failures are the same.
  reasons = list(failures.values())[:1]
  if any("mujoco" in text.lower() for text in failures.values()):
    packages = " or ".join(
      f"`apt-get install {names}` (for {backend})" for backend, names in _DEBIAN_PACKAGES.items()
    )
    reasons = [
      *(f"With MUJOCO_GL={backend or 'unset'}: {text}" for backend, text in failures.items()),
      "MUJOCO_GL selects the OpenGL library of MuJoCo; on Debian and "
      f"Ubuntu, install it with {packages}.",
    ]
  raise RenderingFailed("\n".join(["The environment cannot be rendered.", *reasons]))
