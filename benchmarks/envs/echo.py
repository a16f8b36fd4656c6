"""A task in any space there is: say again what you see."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

SPACES: dict[str, gymnasium.Space] = {
    "box": spaces.Box(-1, 1, (2,)),
    "discrete": spaces.Discrete(4, start=2),
    "multi_discrete": spaces.MultiDiscrete([2, 5]),
    "multi_binary": spaces.MultiBinary(3),
    "dict": spaces.Dict({
        "where": spaces.Box(-1, 1, (2,)), "what": spaces.Discrete(3)}),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2))),
    "nested": spaces.Dict({
        "head": spaces.Box(-1, 1, (1,)),
        "arms": spaces.Tuple((spaces.Discrete(3), spaces.Dict({
            "left": spaces.MultiDiscrete([2, 3])})))}),
}


class Echo(gymnasium.Env):
  """Observes a value, and rewards the action for being the same, up to 1.

  Args:
    space: One of SPACES, of observations and actions.
    length: Steps of an episode.
  """

  def __init__(self, space: str, length: int = 20):
    # A copy, as a space has random numbers of its own.
    self.observation_space = copy.deepcopy(SPACES[space])
    self.action_space = copy.deepcopy(SPACES[space])
    self._length = length

  def reset(self, *, seed: int | None = None, options: dict | None = None
            ) -> tuple[Any, dict]:
    super().reset(seed=seed)
    if seed is not None:
      self.observation_space.seed(seed)
    self._step = 0
    return self._draw(), {}

  def step(self, action):
    reward = likeness(self.observation_space, self._value, action)
    self._step += 1
    return self._draw(), reward, False, self._step >= self._length, {}

  def _draw(self) -> Any:
    self._value = self.observation_space.sample()
    return self._value


def likeness(space: gymnasium.Space, one: Any, other: Any) -> float:
  """Return how alike two values of a space are: 1 if they are the same."""
  if isinstance(space, spaces.Dict):
    return float(np.mean([
        likeness(part, one[key], other[key]) for key, part in space.items()]))
  if isinstance(space, spaces.Tuple):
    return float(np.mean([
        likeness(*parts) for parts in zip(space.spaces, one, other)]))
  if isinstance(space, spaces.Box):
    return 1 - float(np.mean(np.abs(np.subtract(one, other))))
  return float(np.mean(np.equal(one, other)))
