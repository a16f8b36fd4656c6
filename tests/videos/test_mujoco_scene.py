"""Ground planes of MuJoCo environments are rendered as infinite planes."""

import os
import subprocess
import sys

import gymnasium
import mujoco
import numpy as np
import pytest

from agents.videos import mujoco_scene
from tests.videos import gl_support


@pytest.mark.parametrize(
  "name, infinite",
  [("HalfCheetah-v5", True), ("Humanoid-v5", True), ("Reacher-v5", False), ("Pusher-v5", False)],
)
def test_grounds_become_infinite_and_tables_do_not(name, infinite):
  original, changed = [
    gymnasium.make(name, render_mode="rgb_array").unwrapped.model for _ in range(2)
  ]
  mujoco_scene.extend_grounds(changed)
  (plane,) = np.flatnonzero(original.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
  width = original.geom_size[plane, :2]
  assert (changed.geom_size[plane, :2] == (0 if infinite else width)).all()
  others = np.arange(original.ngeom) != plane
  assert (changed.geom_size[others] == original.geom_size[others]).all()
  # The texture keeps its number of squares per meter.
  texrepeat = original.mat_texrepeat.copy()
  if infinite:
    texrepeat[original.geom_matid[plane]] /= width
  np.testing.assert_array_equal(changed.mat_texrepeat, texrepeat)


_RENDER = """
import gymnasium
import numpy as np
from agents.videos import mujoco_scene

def render(position, configure):
  env = gymnasium.make(
      "HalfCheetah-v5", render_mode="rgb_array", width=240, height=240)
  if configure:
    mujoco_scene.configure(env, 240)
  env.reset(seed=3)
  data = env.unwrapped.data
  env.unwrapped.set_state(data.qpos + np.eye(9)[0] * position, data.qvel)
  return env.render()

np.save("frames.npy", [render(0, False), render(0, True), render(200, True)])
"""


@pytest.mark.slow
@pytest.mark.skipif(not gl_support.egl_works(), reason="EGL is not available.")
def test_ground_looks_the_same_200_meters_away(tmp_path):
  environ = {**os.environ, "MUJOCO_GL": "egl", "PYTHONPATH": os.getcwd()}
  subprocess.run([sys.executable, "-c", _RENDER], cwd=tmp_path, env=environ, check=True)
  original, near, far = np.load(tmp_path / "frames.npy").astype(int)

  # Compares numbers of edges, because the phase of the pattern may differ.
  def edges(frame):
    return (np.abs(np.diff(frame[180:].mean(-1))) > 90).mean()

  assert edges(near) == pytest.approx(edges(original), rel=0.2)
  assert edges(far) == pytest.approx(edges(original), rel=0.2)
