import functools
import os
import subprocess
import sys

import gymnasium
import mujoco
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.making import make as make_lib
from agents.videos import renderer
from agents.videos import video
from tests.videos import canvas
from tests.videos import gl_support

_DRAWN = functools.partial(canvas.Canvas, render_mode="rgb_array")


def _scene(episode, size=None, make=_DRAWN, caption=""):
  return renderer.Renderer(make, video.Tile(episode, caption), size)


def test_plays_the_episode_step_by_step():
  played = _scene(canvas.episode(0.5, -0.25, 1.0))
  seen = []
  for step in range(5):
    played.advance(step)
    seen.append((played.steps, float(played.score),
                 canvas.brightness(played.picture())))
  assert seen == [(0, 0, 0), (1, 0.5, 10), (2, 0.25, 20), (3, 1.25, 30),
                  (3, 1.25, 30)]  # The last picture stays.


def test_actions_are_rescaled_as_in_training():
  class Wide(canvas.Canvas):
    action_space = canvas.gymnasium.spaces.Box(0, 8, (1,), np.float32)
  played = _scene(canvas.episode(0.5, 7.0), make=functools.partial(
      Wide, render_mode="rgb_array"))
  played.advance(2)
  assert played.score == 6 + 8


def test_does_not_play_on_behind_an_end():
  played = _scene(canvas.episode(*[1.0] * 6), make=functools.partial(
      _DRAWN, length=4))
  played.advance(6)
  assert (played.steps, played.score) == (4, 4)


@pytest.mark.parametrize("size, shape", [
    (None, (64, 96, 3)), (32, (32, 48, 3)), (128, (128, 192, 3))])
def test_size(size, shape):
  picture = _scene(canvas.episode(0.0), size).picture()
  assert picture.shape == shape and picture.dtype == np.uint8


def test_step_and_score_are_written_on_it():
  plain, captioned = (_scene(canvas.episode(0.5, 0.5), 128, caption=caption)
                      for caption in ("", "after 10 steps"))
  for played in (plain, captioned):
    played.advance(1)
  first, other = plain.picture(), captioned.picture()
  assert (first[:40] != 10).any() and (first[-40:] == 10).all()
  assert (first != other).any()
  before = first.copy()
  plain.advance(2)
  # Not only the ground has changed.
  change = plain.picture().astype(int) - before
  assert len(np.unique(change[:40])) > 2 and np.unique(change[-40:]) == [10]


def test_what_is_no_picture_is_said():
  played = _scene(canvas.episode(0.0), make=functools.partial(
      _DRAWN, broken="text"))
  with pytest.raises(ValueError, match="RGB image.*returned a str"):
    played.picture()


@pytest.mark.parametrize("repeat", [1, 3])
def test_discrete_actions_and_repeated_ones(repeat):
  config = config_lib.Env("CartPole-v1", action_repeat=repeat)
  constructor = make_lib.MakeEnv(config)
  with batch_env.BatchEnv([constructor], seed=4) as batch:
    batch.reset()
    while not batch.finished:
      batch.step(np.array([len(batch.snapshot().actions) % 2]))
    episode, = batch.finished
  played = _scene(episode, make=make_lib.MakeEnv(config, "rgb_array"))
  assert played.picture().shape == (400, 600, 3)
  played.advance(10_000)
  assert (played.steps, float(played.score)) == (episode.length, episode.score)
  assert make_lib.fps(config) == 50 / repeat


@pytest.mark.parametrize("name, endless", [
    ("HalfCheetah-v5", True), ("Humanoid-v5", True), ("Reacher-v5", False),
    ("Pusher-v5", False)])
def test_grounds_lose_their_ends_and_tables_do_not(name, endless):
  models = [gymnasium.make(name, render_mode="rgb_array").unwrapped.model
            for _ in range(2)]
  made, drawn = models
  renderer._widen_grounds(drawn)
  plane, = np.flatnonzero(made.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
  width = made.geom_size[plane, :2]
  assert (drawn.geom_size[plane, :2] == (0 if endless else width)).all()
  others = np.arange(made.ngeom) != plane
  assert (drawn.geom_size[others] == made.geom_size[others]).all()
  # As many squares a meter as before.
  expected = made.mat_texrepeat.copy()
  if endless:
    expected[made.geom_matid[plane]] /= width
  np.testing.assert_array_equal(drawn.mat_texrepeat, expected)


_PICTURES = """
import gymnasium
import numpy as np
from agents.videos import video as film
from agents.videos import renderer as scene
from tests.videos import canvas

def make():
  return gymnasium.make("HalfCheetah-v5", render_mode="rgb_array", width=240,
                        height=240)

def draw(make, place):
  env = make()
  env.reset(seed=3)
  data = env.unwrapped.data
  env.unwrapped.set_state(data.qpos + np.eye(9)[0] * place, data.qvel)
  return env.render()

def in_scene():
  return scene.Renderer(make, film.Tile(canvas.episode(), ""), 240)._env

np.save("pictures.npy", [draw(make, 0), draw(in_scene, 0), draw(in_scene, 200)])
"""


@pytest.mark.skipif(not gl_support.egl_works(), reason="There is no EGL.")
def test_the_ground_has_no_end(tmp_path):
  environ = {**os.environ, "MUJOCO_GL": "egl", "PYTHONPATH": os.getcwd()}
  subprocess.run([sys.executable, "-c", _PICTURES], cwd=tmp_path, env=environ,
                 check=True)
  as_made, here, far = np.load(tmp_path / "pictures.npy").astype(int)
  # The same pattern, but for its phase, so that it has as many edges.
  def edges(picture):
    return (np.abs(np.diff(picture[180:].mean(-1))) > 90).mean()
  assert edges(here) == pytest.approx(edges(as_made), rel=0.2)
  assert edges(far) == pytest.approx(edges(as_made), rel=0.2)
