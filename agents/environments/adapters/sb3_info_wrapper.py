"""Answers what Stable-Baselines3 asks of environments, in their processes.

These must not have to import it, as it brings PyTorch along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium

from agents.environments.blocks import base


class SB3InfoWrapper(gymnasium.Wrapper):
  """Tells infos whole, not sorted by their keys, and reaches into wrappers."""

  def reset(self, **arguments):
    observ, info = self.env.reset(**arguments)
    return observ, {"info": [info]}

  def step(self, action):
    *answers, info = self.env.step(action)
    return *answers, {"info": [info]}

  def _set(self, name: str, value: Any):
    self.env.set_wrapper_attr(name, value)

  def _is_wrapped(self, wrapper_class: type[gymnasium.Wrapper]) -> bool:
    env = self.env
    while isinstance(env, gymnasium.Wrapper):
      if isinstance(env, wrapper_class):
        return True
      env = env.env
    return False


def asked(constructor: base.Constructor) -> Callable[[], SB3InfoWrapper]:
  """Return a function that wraps what another one builds."""
  return lambda: SB3InfoWrapper(constructor())
