"""Tasks that need memory, because a single observation is not sufficient."""

import gymnasium
import numpy as np


class _Masked(gymnasium.ObservationWrapper):
  """Returns only some elements of each observation.

  Args:
    env: Environment with vectors as observations.
    indices: Indices of the elements to return.
  """

  def __init__(self, env: gymnasium.Env, indices: list[int]):
    super().__init__(env)
    self._indices = indices
    space = env.observation_space
    self.observation_space = gymnasium.spaces.Box(
      space.low[indices], space.high[indices], dtype=space.dtype
    )

  def observation(self, observation):
    return observation[self._indices]


def masked_pendulum() -> gymnasium.Env:
  """Returns Pendulum-v1 without the velocity in the observations."""
  return _Masked(gymnasium.make("Pendulum-v1"), [0, 1])


class TMaze(gymnasium.Env):
  """A corridor with a junction, where the agent must remember a sign.

  The task is that of Bakker (2002). An observation contains two numbers: a
  random sign, which is 0 after the first step, and whether the agent is at the
  junction. The actions are forward, up and down. At the junction, a positive
  sign requires "up" and a negative sign "down". The correct action has a reward
  of 1; all other rewards are 0.

  Args:
    length: Number of steps to the junction.
  """

  observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
  action_space = gymnasium.spaces.Discrete(3)

  def __init__(self, length: int = 6):
    self._length = length
    self._sign, self._place = 1, 0

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._sign = int(self.np_random.choice([-1, 1]))
    self._place = 0
    return self._observe(), {}

  def step(self, action):
    at_junction = self._place == self._length
    reward = float(at_junction and action == (1 if self._sign > 0 else 2))
    self._place += not at_junction
    return self._observe(), reward, at_junction, False, {}

  def _observe(self):
    return np.array([self._sign if not self._place else 0, self._place == self._length], np.float32)
