"""Films of training, drawn beside it without taking its time."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile

import cloudpickle

from agents.environments.workers import process
from agents.training.monitoring import episode_recorder
from agents.training.run_folder import run_folder
from agents.videos import background
from agents.videos import render_pool
from agents.videos import video


class VideoRecorder:
  """Has episodes of training filmed, one at a time, into `videos/`.

  They are played again from their seeds and actions, in a process that takes a
  small share of the time.

  Args:
    folder: Of the run.
    variables: Environment variables to draw with, see `studio.backend`.
  """

  def __init__(self, folder: run_folder.RunFolder, variables: dict[str, str]):
    self._folder = folder
    self._variables = variables
    self._process: subprocess.Popen | None = None
    self._film = video.Film("", ())

  @property
  def busy(self) -> bool:
    """Whether a film has begun that `done` has not returned yet."""
    return self._process is not None

  def begin(self, recorded: episode_recorder.RecordedEpisode):
    """Begin to film an episode."""
    assert not self._process
    videos = self._folder.path / "videos"
    self._film = episode_recorder.make_video(recorded, videos)
    self._step = recorded.step
    self._output = tempfile.TemporaryFile()
    self._errors = tempfile.TemporaryFile()
    try:
      videos.mkdir(exist_ok=True)
      with tempfile.TemporaryFile() as job:
        cloudpickle.dump(background.Job(self._folder.config.env, self._film), job)
        job.seek(0)
        # In a session of its own: a Ctrl-C is not for it. Its input stays open;
        # where that closes, the trainer has ended.
        self._process = process.launch(
            "agents.videos.background", (job.fileno(),),
            {**render_pool.VARIABLES, **self._variables}, stdin=subprocess.PIPE,
            stdout=self._output, stderr=self._errors, pass_fds=[job.fileno()],
            start_new_session=True)
    except OSError as error:
      self._tell(str(error))

  def hurry(self):
    """Let the film that has begun take all the time there is."""
    if self._process:
      assert self._process.stdin
      with contextlib.suppress(BrokenPipeError):
        self._process.stdin.write(b"!")
        self._process.stdin.flush()

  def done(self) -> tuple[int, video.Gif] | None:
    """Return step and film of what was finished since the last call, if any.

    What is wrong with it is printed; a film that fails ends no training.
    """
    if not self._process:
      return None
    code = self._process.poll()
    if code is None:
      return None
    self._output.seek(0)
    self._errors.seek(0)
    done: background.Done | None = None
    try:
      done = pickle.load(self._output)
      problem = done.problem
    except Exception:  # It has failed before it could say anything.
      problem = self._errors.read().decode(errors="replace").strip() or (
          f"exit code {code}")
    if problem:
      self._tell(problem)
    self.close()
    return (self._step, done.gif) if done else None

  def _tell(self, problem: str):
    print(f"Note: {self._film.path}: {problem}", file=sys.stderr, flush=True)

  def close(self):
    """Give up what is being filmed. Can be repeated."""
    if not self._process:
      return
    # A group that has ended may count as gone, or as somebody else's.
    with contextlib.suppress(ProcessLookupError, PermissionError):
      os.killpg(self._process.pid, signal.SIGKILL)  # With those that draw.
    self._process.wait()
    assert self._process.stdin
    with contextlib.suppress(BrokenPipeError):
      self._process.stdin.close()
    self._output.close()
    self._errors.close()
    with contextlib.suppress(FileNotFoundError):
      os.unlink(self._film.part)
    self._process = None
