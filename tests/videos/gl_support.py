"""Checks whether this machine can render with EGL."""

import functools
import subprocess
import sys


@functools.cache
def egl_works() -> bool:
  """Returns whether MuJoCo renders without a display."""
  code = (
    "import gymnasium; env = gymnasium.make('Reacher-v5', "
    "render_mode='rgb_array'); env.reset(); env.render()"
  )
  return (
    subprocess.run(
      ["env", "MUJOCO_GL=egl", sys.executable, "-c", code], capture_output=True, cwd="/tmp"
    ).returncode
    == 0
  )
