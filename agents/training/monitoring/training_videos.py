"""Records training episodes as videos in a low-priority process."""

import contextlib
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple

import cloudpickle

from agents.environments.making import make
from agents.environments.workers import process
from agents.training.monitoring import recent_episodes
from agents.training.run_folder import run_folder
from agents.videos import render_pool
from agents.videos import video as video_lib


class FinishedVideo(NamedTuple):
  """A video of a training episode."""

  step: int  # Training step of the episode.
  path: pathlib.Path  # MP4 file.
  gif: video_lib.Gif  # Short version of the video.


class VideoRecorder:
  """Renders training episodes, one at a time, into `videos/`.

  A background process replays each episode from its seed and actions. This
  process uses a small share of the processor time.

  Args:
    folder: Run folder.
    gl_variables: Environment variables of the background process, from
      `render_pool.find_gl_backend`.
  """

  def __init__(self, folder: run_folder.RunFolder, gl_variables: dict[str, str]) -> None:
    self._folder = folder
    self._gl_variables = gl_variables
    self._process: subprocess.Popen | None = None
    self._videos = folder.path / "videos"
    self._unfinished = self._videos / ".unfinished"  # Folder of the current video.
    self._name = ""

  @property
  def busy(self) -> bool:
    """Whether a video is being rendered, or waits for `take_finished`."""
    return self._process is not None

  def start(self, recorded: recent_episodes.RecordedEpisode) -> None:
    """Starts the background process; prints a note if this fails.

    Args:
      recorded: Training episode to render.
    """
    video = recent_episodes.make_video(recorded, self._unfinished)
    self._name = pathlib.Path(video.path).name
    self._step = recorded.step
    self._stdout, self._stderr = (tempfile.TemporaryFile() for _ in range(2))
    try:
      self._unfinished.mkdir(parents=True, exist_ok=True)
      with tempfile.TemporaryFile() as job:
        config = self._folder.config
        constructor = make.MakeEnv(config.env, "rgb_array", seed=config.seed)
        cloudpickle.dump((constructor, video), job)
        job.seek(0)
        # A separate session protects the process from Ctrl-C. The process ends
        # when its input is closed, which happens even if the trainer is killed.
        self._process = process.launch(
          "agents.videos.background",
          (job.fileno(),),
          {**render_pool.PROCESS_VARIABLES, **self._gl_variables},
          stdin=subprocess.PIPE,
          bufsize=0,
          stdout=self._stdout,
          stderr=self._stderr,
          pass_fds=[job.fileno()],
          start_new_session=True,
        )
    except OSError as error:
      self._print(str(error))

  def remove_throttle(self) -> None:
    """Allows the background process to use all idle processor time."""
    if self._process and self._process.stdin:
      with contextlib.suppress(BrokenPipeError):
        self._process.stdin.write(b"!")

  def take_finished(self) -> FinishedVideo | None:
    """Returns the current video if it is finished and was not returned before.

    Failures are printed and do not end training.

    Returns:
      The video, or None if no video has been finished since the last call.
    """
    if not self._process or self._process.poll() is None:
      return None
    self._stdout.seek(0)
    self._stderr.seek(0)
    gif: video_lib.Gif | None = None
    try:
      gif, problem = pickle.load(self._stdout)
      os.replace(self._unfinished / self._name, self._videos / self._name)
    except Exception:  # The process failed before it wrote a result.
      problem = self._stderr.read().decode(errors="replace").strip() or (
        f"exit code {self._process.returncode}"
      )
    if problem:
      self._print(problem)
    self.close()
    return FinishedVideo(self._step, self._videos / self._name, gif) if gif else None

  def close(self) -> None:
    """Abandons the current video. Repeated calls have no effect."""
    if not self._process:
      return
    # Kills the process group, because it also contains ffmpeg. If all processes
    # of the group have ended, its id may be unknown or belong to another user.
    with (
      self._process,
      self._stdout,
      self._stderr,
      contextlib.suppress(ProcessLookupError, PermissionError),
    ):
      os.killpg(self._process.pid, signal.SIGKILL)
    # ffmpeg may end later. It cannot create its file in a renamed folder.
    removed = self._unfinished.rename(self._videos / ".removed")
    shutil.rmtree(removed)
    self._process = None

  def _print(self, problem: str) -> None:
    print(f"Note: {self._videos / self._name}: {problem}", file=sys.stderr, flush=True)
