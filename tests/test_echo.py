"""The environment `echo.Echo` rewards actions that repeat the observation."""

import numpy as np
import pytest

from tests import echo


@pytest.mark.parametrize("name", echo.SPACES)
def test_action_that_repeats_the_observation_has_the_largest_reward(name):
  env = echo.Echo(name)
  observ, _ = env.reset(seed=3)
  rewards, random_rewards = [], []
  for _ in range(20):
    action = env.action_space.sample()
    random_rewards.append(echo.similarity(env.action_space, observ, action))
    observ, reward, _, ended, _ = env.step(observ)
    rewards.append(reward)
  assert ended and rewards == [1.0] * 20
  assert np.mean(random_rewards) < 0.8
  first, _ = env.reset(seed=3)
  assert str(first) == str(env.reset(seed=3)[0])
