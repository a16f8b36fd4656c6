"""Environment with a configurable pair of spaces."""

import gymnasium

# Observation space and action space; tests replace this pair.
SPACES = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)


class Checking(gymnasium.Env):
  """Samples observations; raises if the space does not contain an action."""

  def __init__(self):
    self.observation_space, self.action_space = SPACES

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.observation_space.seed(seed)
    return self.observation_space.sample(), {}

  def step(self, action):
    assert self.action_space.contains(action), action
    return self.observation_space.sample(), 1.0, False, False, {}
