"""Real background processes render training episodes."""

import contextlib
import io
import os
import pathlib
import signal
import time

import numpy as np
import pytest
from PIL import Image

from agents import config as config_lib
from agents.environments.data import episode_data
from agents.training.monitoring import recent_episodes, training_videos
from agents.training.run_folder import run_folder
from tests.videos import canvas, decoding


def _start(tmp_path, length=30, score=15.0, **kwargs):
  """Returns a recorder that renders an episode, and its folder of videos."""
  config = config_lib.Config().override(
    {"env.id": "tests.videos.canvas:Canvas", "env.kwargs": {"length": length, **kwargs}}
  )
  folder = run_folder.create(str(tmp_path), "canvas", config)
  recorder = training_videos.VideoRecorder(folder, {})
  episode = episode_data.Episode(5, np.full((length, 1), 0.5, np.float32), score, {})
  recorder.start(recent_episodes.RecordedEpisode(3, 800, episode))
  return recorder, folder.path / "videos"


def _finish(recorder):
  """Waits for the video and returns it."""
  assert recorder.busy
  recorder.remove_throttle()
  while recorder.busy:
    if finished := recorder.take_finished():
      return finished
    time.sleep(0.02)


def test_video_is_written_and_gif_is_returned(tmp_path, capfd):
  recorder, videos = _start(tmp_path)
  assert recorder.busy
  film = _finish(recorder)
  assert (film.step, film.path) == (800, videos / "training-episode-3.mp4")
  assert not recorder.busy and recorder.take_finished() is None
  assert os.listdir(videos) == ["training-episode-3.mp4"]
  frames, meta = decoding.decode(videos / "training-episode-3.mp4")
  assert frames.shape == (30, 200, 300, 3) and meta["fps"] == 12
  image = Image.open(io.BytesIO(film.gif.data))
  assert image.format == "GIF" and image.n_frames == 30
  assert image.size == (film.gif.width, film.gif.height) and max(image.size) == 160
  assert not capfd.readouterr().err


@pytest.mark.slow
def test_gif_has_at_most_40_frames(tmp_path):
  recorder, videos = _start(tmp_path, 100, 50.0)
  film = _finish(recorder)
  assert Image.open(io.BytesIO(film.gif.data)).n_frames == 40
  frames, _ = decoding.decode(videos / "training-episode-3.mp4")
  assert len(frames) == 100


@pytest.mark.slow
def test_rendering_is_throttled_until_the_throttle_is_removed(tmp_path):
  recorder, _ = _start(tmp_path, 150, 75.0)
  start = time.monotonic()
  # `_finish` removes the throttle before the process begins to render.
  assert _finish(recorder)
  seconds = time.monotonic() - start
  recorder, _ = _start(tmp_path, 150, 75.0)
  time.sleep(2 * seconds)
  assert recorder.busy and not recorder.take_finished()
  recorder.close()


@pytest.mark.slow
def test_long_episodes_are_rendered_at_a_lower_frame_rate(tmp_path):
  recorder, videos = _start(tmp_path, 2_500, 1250.0)
  assert _finish(recorder)
  frames, meta = decoding.decode(videos / "training-episode-3.mp4")
  assert len(frames) == 833 and meta["fps"] == 4  # Every third frame.


def test_failed_start_is_printed(tmp_path, capfd):
  config = config_lib.Config().override({"env.id": "CartPole-v1"})
  folder = run_folder.create(str(tmp_path), "x", config)
  (folder.path / "videos").write_text("This file prevents a folder.")
  recorder = training_videos.VideoRecorder(folder, {})
  recorder.start(recent_episodes.RecordedEpisode(0, 1, canvas.episode(0.0)))
  assert not recorder.busy
  assert "Not a directory" in capfd.readouterr().err


def test_failed_rendering_is_printed_and_leaves_no_file(tmp_path, capfd):
  recorder, videos = _start(tmp_path, render_fault="error")
  assert _finish(recorder) is None
  printed = capfd.readouterr().err
  assert "training-episode-3.mp4: " in printed
  assert "No paint left." in printed
  assert not recorder.busy and not os.listdir(videos)


def test_nondeterministic_environment_is_reported(tmp_path, capfd):
  recorder, _ = _start(tmp_path, reward_noise=1.0)
  assert _finish(recorder)
  assert "is not deterministic" in capfd.readouterr().err


def _processes_of(session: int) -> list[int]:
  """Returns the ids of the running processes of a session."""
  pids = []
  for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
    try:
      fields = path.read_text().rpartition(")")[2].split()
    except OSError:  # The process has just ended.
      continue
    if fields[0] != "Z" and int(fields[3]) == session:
      pids.append(int(path.parent.name))
  return pids


def _wait_until(condition, timeout=20.0):
  deadline = time.monotonic() + timeout
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.05)


def test_all_processes_have_the_lowest_priority(tmp_path):
  recorder, _ = _start(tmp_path, 20_000, 10_000.0)
  session = recorder._process.pid
  priorities: list[tuple[int, int]] = []

  def two_processes_run():  # Python and ffmpeg.
    priorities[:] = []
    for pid in _processes_of(session):
      with contextlib.suppress(ProcessLookupError):  # The process ended.
        priorities.append((os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid)))
    return len(priorities) >= 2

  _wait_until(two_processes_run)
  recorder.close()
  assert set(priorities) == {(19, os.SCHED_IDLE)}
  _wait_until(lambda: not _processes_of(session))  # ffmpeg ends by itself.


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "trainer dies"])
def test_abandoned_video_leaves_no_process_and_no_file(end, tmp_path):
  recorder, videos = _start(tmp_path, 20_000, 10_000.0)
  session = recorder._process.pid
  _wait_until(lambda: videos.exists() and os.listdir(videos))
  if end == "close":
    recorder.close()
    recorder.close()
    assert not os.listdir(videos)
  else:
    recorder._process.stdin.close()
    _wait_until(lambda: not _processes_of(session))
    assert recorder._process.wait() == -signal.SIGKILL
    recorder.close()
  _wait_until(lambda: not _processes_of(session))
  assert not recorder.busy
