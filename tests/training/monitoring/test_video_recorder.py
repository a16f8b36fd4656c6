"""A film is drawn beside training, by real processes."""

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
from agents.environments.data import episodes
from agents.training.monitoring import episode_recorder
from agents.training.monitoring import video_recorder
from agents.training.run_folder import run_folder
from tests.videos import canvas
from tests.videos import decoding


def _begin(tmp_path, length=30, score=15.0, **kwargs):
  config = config_lib.Config().override({
      "env.id": "tests.videos.canvas:Canvas", "env.kwargs": {
          "length": length, **kwargs}})
  folder = run_folder.create(str(tmp_path), "canvas", config)
  made = video_recorder.VideoRecorder(folder, {})
  episode = episodes.Episode(
      5, np.full((length, 1), 0.5, np.float32), score, {})
  made.begin(episode_recorder.RecordedEpisode(3, 800, episode))
  return made, folder.path / "videos"


def _finish(made):
  """Wait for a film and return it."""
  assert made.busy
  made.hurry()
  while made.busy:
    if finished := made.done():
      return finished
    time.sleep(0.02)


def test_film_goes_to_the_run_folder_and_a_gif_comes_back(tmp_path, capfd):
  made, videos = _begin(tmp_path)
  assert made.busy
  step, gif = _finish(made)
  assert step == 800
  assert not made.busy and made.done() is None
  assert os.listdir(videos) == ["training-episode-3.mp4"]
  frames, meta = decoding.decode(videos / "training-episode-3.mp4")
  assert frames.shape == (30, 200, 300, 3) and meta["fps"] == 12
  image = Image.open(io.BytesIO(gif.data))
  assert image.format == "GIF" and image.n_frames == 30
  assert image.size == (gif.width, gif.height) and max(image.size) == 160
  assert not capfd.readouterr().err


@pytest.mark.slow
def test_long_films_are_short_in_tensorboard(tmp_path):
  made, videos = _begin(tmp_path, 100, 50.0)
  _, gif = _finish(made)
  assert Image.open(io.BytesIO(gif.data)).n_frames == 40
  frames, _ = decoding.decode(videos / "training-episode-3.mp4")
  assert len(frames) == 100


@pytest.mark.slow
def test_in_a_hurry_there_are_no_pauses(tmp_path):
  made, _ = _begin(tmp_path, 150, 75.0)
  start = time.monotonic()
  assert _finish(made)  # Asked for before the process has begun to draw.
  hurried = time.monotonic() - start
  made, _ = _begin(tmp_path, 150, 75.0)
  time.sleep(2 * hurried)
  assert made.busy and not made.done()
  made.close()


@pytest.mark.slow
def test_very_long_episodes_are_shortened(tmp_path):
  made, videos = _begin(tmp_path, 2_500, 1250.0)
  assert _finish(made)
  frames, meta = decoding.decode(videos / "training-episode-3.mp4")
  assert len(frames) == 833 and meta["fps"] == 4  # Of 12.


def test_what_can_not_begin_is_told(tmp_path, capfd):
  config = config_lib.Config().override({"env.id": "CartPole-v1"})
  folder = run_folder.create(str(tmp_path), "x", config)
  (folder.path / "videos").write_text("In the way.")
  made = video_recorder.VideoRecorder(folder, {})
  made.begin(episode_recorder.RecordedEpisode(0, 1, canvas.episode(0.0)))
  assert not made.busy
  assert "File exists" in capfd.readouterr().err


def test_failures_are_told_and_end_nothing(tmp_path, capfd):
  made, videos = _begin(tmp_path, broken="error")
  assert _finish(made) is None
  assert "training-episode-3.mp4: " in (told := capfd.readouterr().err)
  assert "No paint left." in told
  assert not made.busy and not os.listdir(videos)


def test_environments_that_do_not_repeat_are_told(tmp_path, capfd):
  made, _ = _begin(tmp_path, chance=1.0)
  assert _finish(made)
  assert "does not repeat itself" in capfd.readouterr().err


def _processes_of(session: int) -> list[int]:
  """Return the processes of a session, but for those that have ended."""
  found = []
  for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
    try:
      fields = path.read_text().rpartition(")")[2].split()
    except OSError:  # It has just ended.
      continue
    if fields[0] != "Z" and int(fields[3]) == session:
      found.append(int(path.parent.name))
  return found


def _wait_until(condition, patience=20.0):
  deadline = time.monotonic() + patience
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.05)


def test_it_takes_only_the_time_that_nobody_else_wants(tmp_path):
  made, _ = _begin(tmp_path, 20_000, 10_000.0)
  session = made._process.pid
  seen: list[tuple[int, int]] = []
  def look():
    seen[:] = []
    for pid in _processes_of(session):
      with contextlib.suppress(ProcessLookupError):  # It has just ended.
        seen.append((os.getpriority(os.PRIO_PROCESS, pid),
                     os.sched_getscheduler(pid)))
    return len(seen) >= 2  # With ffmpeg.
  _wait_until(look)
  made.close()
  assert set(seen) == {(19, os.SCHED_IDLE)}
  _wait_until(lambda: not _processes_of(session))  # ffmpeg ends by itself.


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "trainer dies"])
def test_nothing_is_left_of_a_film_that_is_given_up(end, tmp_path):
  made, videos = _begin(tmp_path, 20_000, 10_000.0)
  session = made._process.pid
  _wait_until(lambda: videos.exists() and os.listdir(videos))
  if end == "close":
    made.close()
    made.close()
    assert not os.listdir(videos)
  else:
    made._process.stdin.close()
    _wait_until(lambda: not _processes_of(session))
    assert made._process.wait() == -signal.SIGKILL
    made.close()
  _wait_until(lambda: not _processes_of(session))
  assert not made.busy


