"""Environment in which the agent must repeat observations of any space."""

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
  "dict": spaces.Dict({"where": spaces.Box(-1, 1, (2,)), "what": spaces.Discrete(3)}),
  "tuple": spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2))),
  "nested": spaces.Dict(
    {
      "head": spaces.Box(-1, 1, (1,)),
      "arms": spaces.Tuple(
        (spaces.Discrete(3), spaces.Dict({"left": spaces.MultiDiscrete([2, 3])}))
      ),
    }
  ),
}


class Echo(gymnasium.Env):
  """Observes a random value; rewards actions that are similar to this value.

  The reward is 1 if the action equals the observation, and smaller otherwise.

  Args:
    space: Key in SPACES of the space of observations and actions.
    length: Number of steps of an episode.
  """

  def __init__(self, space: str, length: int = 20):
    # Copies the spaces, because every space has a random number generator.
    self.observation_space = copy.deepcopy(SPACES[space])
    self.action_space = copy.deepcopy(SPACES[space])
    self._length = length

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    super().reset(seed=seed)
    if seed is not None:
      self.observation_space.seed(seed)
    self._step = 0
    return self._draw(), {}

  def step(self, action):
    reward = similarity(self.observation_space, self._value, action)
    self._step += 1
    return self._draw(), reward, False, self._step >= self._length, {}

  def _draw(self) -> Any:
    self._value = self.observation_space.sample()
    return self._value


def similarity(space: gymnasium.Space, one: Any, other: Any) -> float:
  """Returns the similarity of two values of a space; 1 for equal values."""
  if isinstance(space, spaces.Dict):
    return float(
      np.mean([similarity(subspace, one[key], other[key]) for key, subspace in space.items()])
    )
  if isinstance(space, spaces.Tuple):
    return float(np.mean([similarity(*parts) for parts in zip(space.spaces, one, other)]))
  if isinstance(space, spaces.Box):
    return 1 - float(np.mean(np.abs(np.subtract(one, other))))
  return float(np.mean(np.equal(one, other)))
