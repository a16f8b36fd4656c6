"""Tasks that need a memory, as a single observation does not tell enough."""

import gymnasium
import numpy as np


class _Masked(gymnasium.ObservationWrapper):
  """Hides all but some numbers of an observation."""

  def __init__(self, env: gymnasium.Env, seen: list[int]):
    super().__init__(env)
    self._seen = seen
    space = env.observation_space
    self.observation_space = gymnasium.spaces.Box(
        space.low[seen], space.high[seen], dtype=space.dtype)

  def observation(self, observation):
    return observation[self._seen]


def masked_cartpole() -> gymnasium.Env:
  """CartPole-v1 without velocities."""
  return _Masked(gymnasium.make("CartPole-v1"), [0, 2])


def masked_pendulum() -> gymnasium.Env:
  """Pendulum-v1 without the velocity."""
  return _Masked(gymnasium.make("Pendulum-v1"), [0, 1])


class TMaze(gymnasium.Env):
  """A corridor; at its end, the agent turns to the side shown at the start.

  Bakker (2002). Observed are the sign, in the first step only, and whether this
  is the junction. Actions are forward, up and down; the right one at the
  junction is rewarded by one, and no other ever is.
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
    return np.array([self._sign if not self._place else 0,
                     self._place == self._length], np.float32)
