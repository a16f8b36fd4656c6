"""Real render workers write videos, which the tests decode."""

import functools
import os
import signal

import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.data import episode_data
from agents.environments.making import make
from agents.videos import render_pool, render_worker
from agents.videos import video as video_lib
from tests.videos import canvas, decoding, gl_support

_MAKE = canvas.make


def _tiles(*lengths):
  return tuple(video_lib.Tile(canvas.episode(*[0.5] * length)) for length in lengths)


def _record(videos, make=_MAKE, num_workers=1):
  """Records videos with 12 frames per second."""
  job = render_worker.RenderJob(make, videos, None, num_workers)
  return render_pool.record(job, 12, {})


@pytest.mark.parametrize("num_workers", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_frames_are_in_order_for_any_number_of_workers(num_workers, tmp_path):
  videos = [
    video_lib.Video(str(tmp_path / "long.mp4"), _tiles(11)),
    video_lib.Video(str(tmp_path / "short.mp4"), _tiles(2)),
    video_lib.Video(str(tmp_path / "grid.mp4"), _tiles(3, 5, 1)),
  ]
  written = list(_record(videos, num_workers=num_workers))
  assert written == [(video, "") for video in videos]
  for video in videos[:2]:
    frames, meta = decoding.decode(video.path)
    assert meta["fps"] == 12 and meta["codec"].startswith("h264")
    assert frames.shape == (video.num_frames, 64, 96, 3)
    np.testing.assert_allclose(
      [canvas.brightness(frame) for frame in frames],
      10 * np.arange(1, video.num_frames + 1),
      atol=4,
    )
  frames, _ = decoding.decode(videos[2].path)
  assert frames.shape == (5, 128, 192, 3)
  for column, length in ((0, 3), (1, 5)):  # A last frame stays to the end.
    np.testing.assert_allclose(
      [frame[48:64, 96 * column + 8 : 96 * column + 88].mean() for frame in frames],
      10 * np.minimum(np.arange(1, 6), length),
      atol=4,
    )
  assert sorted(os.listdir(tmp_path)) == ["grid.mp4", "long.mp4", "short.mp4"]


@pytest.mark.slow
def test_robots_of_envpool_are_filmed(tmp_path):
  pytest.importorskip("envpool")
  if not gl_support.egl_works():
    pytest.skip("Rendering needs EGL.")
  constructor = make.MakeEnv(
    config_lib.Env("BarkourJoystick-v1", backend="envpool", max_length=3), "rgb_array"
  )
  actions = np.zeros((3, 12), np.float32)
  env = constructor()
  env.reset(seed=5)
  score = sum(env.step(action)[1] for action in actions)
  episode = episode_data.Episode(5, actions, score, {})
  video = video_lib.Video(str(tmp_path / "robot.mp4"), (video_lib.Tile(episode),))
  ((_, problem),) = render_pool.record(
    render_worker.RenderJob(constructor, [video], 240),
    make.fps(constructor.config),
    render_pool.find_gl_backend(constructor),
  )
  assert not problem  # The replay has the same rewards.
  frames, meta = decoding.decode(video.path)
  assert meta["fps"] == 50 and frames.shape == (3, 240, 240, 3)
  assert frames.std() > 10 and (frames[0] != frames[2]).mean() > 0.001


def test_nondeterministic_environment_is_reported(tmp_path):
  video = video_lib.Video(str(tmp_path / "a.mp4"), _tiles(4))
  ((_, problem),) = _record([video], functools.partial(_MAKE, reward_noise=1.0))
  assert "is not deterministic: the replay of episode 0, seed 3" in problem


def test_find_gl_backend_raises_the_error_of_render():
  with pytest.raises(render_pool.RenderingFailed, match="No paint left.") as caught:
    render_pool.find_gl_backend(functools.partial(_MAKE, render_fault="error"))
  assert "apt-get" not in str(caught.value)


def test_hanging_driver_is_an_error(monkeypatch):
  monkeypatch.setattr(render_pool, "_SECONDS_TO_TEST", 0.2)
  with pytest.raises(render_pool.RenderingFailed, match="No frame was rendered within 0.2 seconds"):
    render_pool.find_gl_backend(functools.partial(_MAKE, render_fault="hang"))


@pytest.mark.slow
def test_error_names_packages_if_opengl_is_missing(monkeypatch):
  def make(environment):
    raise ImportError(f"No {os.environ['MUJOCO_GL']} here for MuJoCo.")

  with pytest.raises(render_pool.RenderingFailed) as caught:
    render_pool.find_gl_backend(make)
  for part in (
    "No egl here",
    "No osmesa here",
    "apt-get install libegl1",
    "apt-get install libosmesa6",
  ):
    assert part in str(caught.value)
  monkeypatch.setenv("MUJOCO_GL", "osmesa")
  with pytest.raises(render_pool.RenderingFailed) as caught:
    render_pool.find_gl_backend(make)
  assert "No egl here" not in str(caught.value)


def test_failing_step_leaves_no_partial_file(tmp_path):
  class Fails(canvas.Canvas):
    def step(self, action):
      if self._steps == 3:
        raise ValueError("Broken leg.")
      return super().step(action)

  video = video_lib.Video(str(tmp_path / "a.mp4"), _tiles(9))
  make = functools.partial(canvas.make, kind=Fails)
  with pytest.raises(render_pool.RenderingFailed, match="Broken leg."):
    list(_record([video], make, num_workers=2))
  assert not os.listdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("num_crashes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_two_crashes_of_native_code_are_retried(num_crashes, tmp_path):
  class Crashes(canvas.Canvas):
    def render(self):
      count = len(os.listdir(tmp_path / "crashes"))
      if self._steps == 3 and count < num_crashes:
        (tmp_path / "crashes" / str(count)).touch()
        signal.raise_signal(signal.SIGSEGV)
      return super().render()

  (tmp_path / "crashes").mkdir()
  videos = [video_lib.Video(str(tmp_path / f"{length}.mp4"), _tiles(length)) for length in (1, 5)]
  written = _record(videos, functools.partial(canvas.make, kind=Crashes))
  assert next(written) == (videos[0], "")
  if num_crashes == 2:
    assert list(written) == [(videos[1], "")]
    assert decoding.decode(videos[1].path)[0].shape == (5, 64, 96, 3)
  else:
    with pytest.raises(render_pool.RenderingFailed, match="(?s)fault.*in render"):
      next(written)
