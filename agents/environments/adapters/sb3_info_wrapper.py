"""Environment wrapper that gives `SB3VecEnv` access to infos and wrappers.

Worker processes import this module. It does not import Stable-Baselines3,
because that package imports PyTorch.
"""

from collections.abc import Callable
from typing import Any

import gymnasium

from agents.environments.blocks import base
from agents.environments.making import wrappers


class SB3InfoWrapper(gymnasium.Wrapper):
  """Returns `{"info": [info]}` instead of `info`.

  Vector environments split dicts by their keys, but keep lists.

  Args:
    env: Environment to wrap.
  """

  def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
    """Begins an episode; puts the info into a list."""
    observ, info = self.env.reset(**arguments)
    return observ, {"info": [info]}

  def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
    """Steps the environment; puts the info into a list."""
    *result, info = self.env.step(action)
    return *result, {"info": [info]}

  def _is_wrapped(self, wrapper_class: type[gymnasium.Wrapper]) -> bool:
    return any(isinstance(wrapper, wrapper_class) for wrapper in wrappers.chain(self.env))


def wrap(constructor: base.Constructor) -> Callable[[], SB3InfoWrapper]:
  """Returns a constructor of wrapped environments.

  Args:
    constructor: Function without arguments that returns an environment.
  """
  return lambda: SB3InfoWrapper(constructor())
