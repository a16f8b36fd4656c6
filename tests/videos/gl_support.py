"""Checks whether this machine can render with EGL."""

import contextlib
import functools
import subprocess
import sys

import pytest

from agents.environments.workers import pool


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


@contextlib.contextmanager
def workers(config):
  """Provides a pool for environments that render, and None for all others.

  Skips the test if the environments render and this machine has no EGL.
  """
  if not config.env.renders:
    yield None
    return
  if not egl_works():
    pytest.skip("Rendering needs EGL.")
  with pool.WorkerPool(1, variables={"MUJOCO_GL": "egl"}) as opened:
    yield opened
