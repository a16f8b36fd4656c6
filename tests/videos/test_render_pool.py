"""Films are drawn by real processes and decoded again."""

import functools
import os
import signal

import numpy as np
import pytest

from agents.videos import render_pool
from agents.videos import video
from tests.videos import canvas
from tests.videos import decoding

_DRAWN = functools.partial(canvas.Canvas, render_mode="rgb_array")


def _tiles(*lengths):
  return tuple(video.Tile(canvas.episode(*[0.5] * length))
               for length in lengths)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_pictures_come_in_order_whoever_draws(processes, tmp_path):
  films = [video.Video(str(tmp_path / "long.mp4"), _tiles(11)),
           video.Video(str(tmp_path / "short.mp4"), _tiles(2)),
           video.Video(str(tmp_path / "grid.mp4"), _tiles(3, 5, 1))]
  made = list(render_pool.RenderPool(_DRAWN, None, processes, {}).record(
      films, 12))
  assert made == [(film, "") for film in films]
  for film in films[:2]:
    frames, meta = decoding.decode(film.path)
    assert meta["fps"] == 12 and meta["codec"].startswith("h264")
    assert frames.shape == (film.length, 64, 96, 3)
    np.testing.assert_allclose(
        [canvas.brightness(frame) for frame in frames],
        10 * np.arange(1, film.length + 1), atol=4)
  frames, _ = decoding.decode(films[2].path)
  assert frames.shape == (5, 128, 192, 3)
  for column, length in ((0, 3), (1, 5)):  # They wait for the longest.
    np.testing.assert_allclose(
        [frame[48:64, 96 * column + 8:96 * column + 88].mean()
         for frame in frames],
        10 * np.minimum(np.arange(1, 6), length), atol=4)
  assert sorted(os.listdir(tmp_path)) == ["grid.mp4", "long.mp4", "short.mp4"]


def test_environments_that_do_not_repeat_are_told(tmp_path):
  film = video.Video(str(tmp_path / "a.mp4"), _tiles(4))
  (_, problem), = render_pool.RenderPool(
      functools.partial(_DRAWN, chance=1.0), None, 1, {}).record([film], 12)
  assert "does not repeat itself: episode 0, seed 3" in problem
  (_, problem), = render_pool.RenderPool(
      functools.partial(_DRAWN, length=3), None, 1, {}).record([film], 12)
  assert "made 1.5 in 3 steps when it was filmed, 2.0 in 4" in problem


def test_what_can_not_be_drawn_is_said_at_once():
  with pytest.raises(render_pool.RenderingFailed, match="No paint left.") as caught:
    render_pool.find_gl_backend(functools.partial(_DRAWN, broken="error"))
  assert "apt-get" not in str(caught.value)


def test_packages_are_named_where_opengl_is_missing(monkeypatch):
  def make():
    raise ImportError(f"No {os.environ['MUJOCO_GL']} here for MuJoCo.")
  with pytest.raises(render_pool.RenderingFailed) as caught:
    render_pool.find_gl_backend(make)
  for part in ("No egl here", "No osmesa here", "apt-get install libegl1",
               "apt-get install libosmesa6"):
    assert part in str(caught.value)
  monkeypatch.setenv("MUJOCO_GL", "osmesa")
  with pytest.raises(render_pool.RenderingFailed) as caught:
    render_pool.find_gl_backend(make)
  assert "No egl here" not in str(caught.value)


def test_what_fails_half_way_leaves_no_half_film(tmp_path):
  class Fails(canvas.Canvas):
    def step(self, action):
      if self._steps == 3:
        raise ValueError("Broken leg.")
      return super().step(action)
  film = video.Video(str(tmp_path / "a.mp4"), _tiles(9))
  with pytest.raises(render_pool.RenderingFailed, match="Broken leg."):
    list(render_pool.RenderPool(functools.partial(
        Fails, render_mode="rgb_array"), None, 2, {}).record([film], 12))
  assert not os.listdir(tmp_path)


@pytest.mark.parametrize("crashes", [2, 3])
def test_films_are_drawn_although_native_code_crashes_now_and_then(
    crashes, tmp_path):
  class Crashes(canvas.Canvas):
    def render(self):
      before = len(os.listdir(tmp_path / "crashes"))
      if self._steps == 3 and before < crashes:
        (tmp_path / "crashes" / str(before)).touch()
        signal.raise_signal(signal.SIGSEGV)
      return super().render()
  (tmp_path / "crashes").mkdir()
  films = [video.Video(str(tmp_path / f"{length}.mp4"), _tiles(length))
           for length in (1, 5)]
  recorded = render_pool.RenderPool(functools.partial(
      Crashes, render_mode="rgb_array"), None, 1, {}).record(films, 12)
  assert next(recorded) == (films[0], "")
  if crashes == 2:
    assert list(recorded) == [(films[1], "")]
    assert decoding.decode(films[1].path)[0].shape == (5, 64, 96, 3)
  else:
    with pytest.raises(render_pool.RenderingFailed, match="(?s)fault.*in render"):
      next(recorded)
