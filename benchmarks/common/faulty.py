"""Wrapper that makes an environment fail on request."""

import os
import pathlib
import time

import gymnasium
import numpy as np

FAULTS = "hang", "raise", "nan"


class Faulty(gymnasium.Wrapper):
  """Wraps an environment that fails once per request.

  If several instances have the same path, only the first instance to call
  `step` executes the request.

  Args:
    env_id: Id of a Gymnasium environment.
    path: File that `request` writes; every step checks whether it exists.
    render_mode: Render mode of the environment.
  """

  def __init__(self, env_id: str, path: str, render_mode: str | None = None):
    super().__init__(gymnasium.make(env_id, disable_env_checker=True, render_mode=render_mode))
    self._path = path

  def step(self, action):
    """Steps the environment; fails if a fault was requested."""
    observ, *rest = self.env.step(action)
    fault = self._take() if os.access(self._path, os.F_OK) else None
    if fault == "hang":
      time.sleep(1e6)
    if fault == "raise":
      raise ValueError("This failure of the environment was requested.")
    return np.full_like(observ, np.nan) if fault == "nan" else observ, *rest

  def _take(self) -> str | None:
    """Returns the requested fault; None if another environment was faster."""
    taken = f"{self._path}-{os.getpid()}-{id(self)}"
    try:
      fault = pathlib.Path(self._path).read_text()
      if fault not in FAULTS:
        return None
      os.rename(self._path, taken)  # Succeeds in one environment only.
    except FileNotFoundError:
      return None
    os.unlink(taken)
    return fault


def request(path: pathlib.Path, fault: str):
  """Requests one failure of one environment.

  Args:
    path: Argument `path` of the environments.
    fault: One of FAULTS.
  """
  temporary = path.with_suffix(".tmp")
  temporary.write_text(fault)
  os.replace(temporary, path)
