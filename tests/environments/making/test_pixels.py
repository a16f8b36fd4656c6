"""Pixels observes rendered images."""

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents import trained_policy
from agents.commands import check
from agents.environments.adapters import remote_env
from agents.environments.making import make, pixels
from agents.videos import render_pool
from tests import toy
from tests.support import command
from tests.videos import canvas, gl_support


def _canvas(**kwargs):
  return pixels.Pixels(canvas.Canvas(render_mode="rgb_array"), **kwargs)


def test_observations_are_the_frames_after_each_step():
  # Frames have a gray level of 10 times the number of steps.
  env = _canvas(size=(64, 96))
  observ, _ = env.reset(seed=0)
  for step in range(5):
    assert env.observation_space.contains(observ)
    assert observ.shape == (64, 96) and {*np.unique(observ)} <= {10 * step, max(10 * step - 1, 0)}
    observ, *_ = env.step(np.zeros(1, np.float32))


def test_frames_are_resized_and_keep_their_colors():
  pytest.importorskip("cv2")
  env = _canvas(size=(32, 40), grayscale=False)
  env.reset(seed=0)
  observ, *_ = env.step(np.zeros(1, np.float32))
  assert env.observation_space.contains(observ)
  assert observ.shape == (32, 40, 3) and (observ == 10).all()


def test_the_state_can_be_kept():
  env = _canvas(size=(64, 96), keep_state=True)
  observ, _ = env.reset(seed=0)
  assert env.observation_space.contains(observ) and observ["state"].shape == (1,)


def test_the_constructor_does_not_render():
  env = canvas.Canvas(render_mode="rgb_array", render_fault="error")
  assert pixels.Pixels(env).observation_space.shape == (84, 84)


def test_pixels_need_the_render_mode():
  with pytest.raises(ValueError, match="env.kwargs.render_mode=rgb_array. Received: None"):
    pixels.Pixels(toy.Target())
  env = config_lib.Env("Pendulum-v1", wrappers=({"Pixels": {}},))
  with pytest.raises(config_lib.ConfigError, match=r"env.kwargs.render_mode=rgb_array"):
    make.check(env)


def test_commands_that_would_render_beside_tensorflow_are_refused():
  config = config_lib.Config().override(
    {
      "env.id": "tests.videos.canvas:Canvas",
      "env.kwargs": {"render_mode": "rgb_array"},
      "env.wrappers": [{"Pixels": {}}],
    }
  )
  with pytest.raises(config_lib.ConfigError, match="without the wrapper Pixels"):
    check.check(config)


_QUICK = [
  *("--set", "num_envs=2", "--set", "algorithm.segment_length=16", "--set", "eval_episodes=1"),
  *("--set", "algorithm.minibatch_size=32", "--set", "env.max_length=10", "--steps", "64"),
  "--eager",
]


@pytest.mark.slow
def test_a_robot_is_trained_filmed_and_exported_from_pixels(tmp_path):
  if not gl_support.egl_works():
    pytest.skip("Rendering needs EGL.")
  logdir = str(tmp_path / "logdir")
  config = ["--config", "pixel_inverted_pendulum", "--logdir", logdir]
  done = command.run("train.py", *config, *_QUICK, cwd=tmp_path)
  assert "Finished 64 steps" in done.stdout, done.stdout
  done = command.run("visualize.py", logdir, "--num-episodes", "1", "--size", "64", cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  (run,) = (tmp_path / "logdir").iterdir()
  assert list((run / "videos").glob("*.mp4"))
  policy = trained_policy.load(str(run))
  env = policy.make_env()
  observ, _ = env.reset(seed=0)
  assert observ["pixels"].shape == (64, 64) and observ["pixels"].any()
  state = policy.begin()
  for _ in range(3):
    action, state = policy(observ, state)
    observ, *_ = env.step(action)
  env.close()
  done = command.run("train.py", *config, *_QUICK, "--no-env-processes", cwd=tmp_path)
  assert done.returncode == 2 and "needs worker processes" in done.stdout


def test_remote_environments_have_the_results_of_local_ones():
  constructor = lambda: gymnasium.make("Pendulum-v1", max_episode_steps=3)  # noqa: E731
  local, remote = constructor(), remote_env.RemoteEnv(constructor, {})
  for seed in (3, 4):
    np.testing.assert_array_equal(local.reset(seed=seed)[0], remote.reset(seed=seed)[0])
    for action in ([0.5], [1.0], [-2.0]):
      expected = local.step(np.array(action, np.float32))
      received = remote.step(np.array(action, np.float32))
      np.testing.assert_array_equal(expected[0], received[0])
      assert expected[1:4] == received[1:4]
  remote.close()


def test_missing_packages_for_rendering_are_named(monkeypatch):
  monkeypatch.setenv("MUJOCO_GL", "nothing")
  env = config_lib.Env(
    "InvertedPendulum-v5", {"render_mode": "rgb_array"}, wrappers=({"Pixels": {}},)
  )
  with pytest.raises(render_pool.RenderingFailed, match="apt-get install libegl1"):
    render_pool.find_gl_backend(make.MakeEnv(env))
