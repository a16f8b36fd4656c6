"""An environment that fails when it is told to."""

from __future__ import annotations

import os
import pathlib
import time

import gymnasium
import numpy as np

FAULTS = "hang", "raise", "nan"


class Faulty(gymnasium.Wrapper):
  """Any environment; the first of all that sees a file fails once.

  Args:
    env_id: What Gymnasium knows it by.
    path: The file that is looked for at each step, see `order`.
  """

  def __init__(self, env_id: str, path: str, render_mode: str | None = None):
    super().__init__(gymnasium.make(
        env_id, disable_env_checker=True, render_mode=render_mode))
    self._path = path

  def step(self, action):
    observ, *rest = self.env.step(action)
    fault = self._take() if os.access(self._path, os.F_OK) else None
    if fault == "hang":
      time.sleep(1e6)
    if fault == "raise":
      raise ValueError("Somebody wanted this environment to fail.")
    return np.full_like(observ, np.nan) if fault == "nan" else observ, *rest

  def _take(self) -> str | None:
    """Return what to do, unless another environment does it."""
    mine = f"{self._path}-{os.getpid()}-{id(self)}"
    try:
      fault = pathlib.Path(self._path).read_text()
      if fault not in FAULTS:  # It is something else.
        return None
      os.rename(self._path, mine)
    except FileNotFoundError:
      return None
    os.unlink(mine)
    return fault


def order(path: pathlib.Path, fault: str):
  """Have one environment fail.

  Args:
    path: Of the environments.
    fault: One of FAULTS.
  """
  temporary = path.with_suffix(".tmp")
  temporary.write_text(fault)
  os.replace(temporary, path)
