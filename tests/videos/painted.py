"""A task in nested spaces that draws itself, and fails now and then."""

from __future__ import annotations

import numpy as np

from tests import echo


class Painted(echo.Echo):
  """Paints what it observes; one in thirty episodes is broken in step 5."""

  metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

  def __init__(self, render_mode=None):
    super().__init__("nested")
    self.render_mode = render_mode

  def reset(self, *, seed=None, options=None):
    self._broken = seed % 30 == 0
    return super().reset(seed=seed)

  def step(self, action):
    if self._broken and self._step == 5:
      raise ValueError("No paint left.")
    return super().step(action)

  def render(self):
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[..., 0] = np.uint8(127 * (1 + self._value["head"][0]))
    picture[..., 1] = 80 * self._value["arms"][0]
    return picture
