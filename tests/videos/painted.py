"""Environment with nested spaces that renders and sometimes fails."""

import numpy as np

from tests import echo


class Painted(echo.Echo):
  """Renders its observation; fails in the sixth step if 30 divides the seed."""

  metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

  def __init__(self, render_mode=None):
    super().__init__("nested")
    self.render_mode = render_mode

  def reset(self, *, seed=None, options=None):
    self._fails = seed % 30 == 0
    return super().reset(seed=seed)

  def step(self, action):
    if self._fails and self._step == 5:
      raise ValueError("No paint left.")
    return super().step(action)

  def render(self):
    frame = np.zeros((64, 64, 3), np.uint8)
    frame[..., 0] = np.uint8(127 * (1 + self._value["head"][0]))
    frame[..., 1] = 80 * self._value["arms"][0]
    return frame
