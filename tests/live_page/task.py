"""Environment of the runs that the live page shows in tests."""

import time

from tests.videos import canvas


class Task(canvas.Canvas):
  """Frames without OpenGL, rewards of two parts, and steps of any duration.

  Args:
    render_mode: See `Canvas`.
    seconds: Duration of a step.
  """

  def __init__(self, render_mode=None, seconds=0.0):
    super().__init__(render_mode=render_mode)
    self._seconds = seconds

  def step(self, action):
    time.sleep(self._seconds)
    observ, reward, terminated, truncated, _ = super().step(action)
    parts = {"reward_move": reward + 1.0, "reward_cost": -1.0}
    return observ, reward, terminated, truncated, parts
