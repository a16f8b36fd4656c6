"""Adapts MuJoCo's renderer to the frame size, and extends its ground planes."""

import sys
from typing import Any

import gymnasium
import numpy as np

_MAX_SHADOW_MAP = 1024  # Width of the shadow texture in pixels.
_MIN_SIZE_WITH_ANTIALIASING = 400  # Pixels.
_MIN_SIZE_WITH_SHADOWS = 240  # Pixels.
_MIN_GROUND_SIZE = 10  # Half width in meters; smaller planes can be tables.


def configure(env: gymnasium.Env, size: int | None) -> None:
  """Sets frame size and rendering quality of a MuJoCo environment.

  The function does not change other environments. On a CPU, the shadow map
  takes half of the rendering time, and antialiasing triples the rendering time
  of small frames.

  Args:
    env: Environment with `render_mode="rgb_array"`, before its first frame.
    size: Height and width of a frame in pixels; None keeps the
      environment's size.
  """
  renderer = getattr(env.unwrapped, "mujoco_renderer", None)
  if renderer is None or "mujoco" not in sys.modules:
    return
  visual = renderer.model.vis
  visual.quality.shadowsize = min(visual.quality.shadowsize, _MAX_SHADOW_MAP)
  if size is not None:
    renderer.width = renderer.height = size
    visual.global_.offwidth = max(visual.global_.offwidth, size)
    visual.global_.offheight = max(visual.global_.offheight, size)
    if size < _MIN_SIZE_WITH_ANTIALIASING:
      visual.quality.offsamples = 0
    if size < _MIN_SIZE_WITH_SHADOWS:
      visual.quality.shadowsize = 0
  extend_grounds(renderer.model)


def extend_grounds(model: Any) -> None:
  """Makes ground planes infinite, as they already are for collisions.

  A well-trained HalfCheetah runs farther than the 40 meters of ground that
  MuJoCo renders by default.

  Args:
    model: `mujoco.MjModel`, changed in place.
  """
  import mujoco  # Imported late: environments without MuJoCo do not need it.

  grounds = (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE) & (
    model.geom_size[:, :2].min(-1) >= _MIN_GROUND_SIZE
  )
  for plane in np.flatnonzero(grounds):
    width = model.geom_size[plane, :2].copy()
    model.geom_size[plane, :2] = 0  # MuJoCo renders size 0 as infinite.
    material = model.geom_matid[plane]
    if material >= 0 and not model.mat_texuniform[material]:
      # Infinite planes repeat the texture per meter, finite ones per plane.
      model.mat_texrepeat[material] /= width
