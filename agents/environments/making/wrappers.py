"""Wrappers that Gymnasium does not have."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from agents.environments.data import episodes


class DefaultTimeLimit(gymnasium.wrappers.TimeLimit):
  """Truncates episodes of which nobody knows whether they end."""

  @property
  def spec(self):  # type: ignore[override]
    return self.env.spec  # It is not the task that has this limit.


class ActionRepeat(gymnasium.Wrapper):
  """Repeats each action, sums the rewards, and stops at the episode's end."""

  def __init__(self, env: gymnasium.Env, amount: int):
    super().__init__(env)
    self._amount = amount

  def step(self, action):
    total = 0.0
    parts: dict[str, Any] = {}
    for _ in range(self._amount):
      observ, reward, terminated, truncated, info = self.env.step(action)
      total += float(reward)
      episodes.add_reward_parts(parts, info)
      if terminated or truncated:
        break
    return observ, total, terminated, truncated, {**info, **parts}


class RandomStart(gymnasium.Wrapper):
  """Takes up to `max_steps` random actions before the agent's first.

  Their number and values follow from the seed of the reset.
  """

  def __init__(self, env: gymnasium.Env, max_steps: int):
    super().__init__(env)
    self._max_steps = max_steps

  def reset(self, *, seed: int | None = None, options: dict | None = None
            ) -> tuple[Any, dict]:
    observ, info = self.env.reset(seed=seed, options=options)
    # Not the environment's own numbers, which the seed itself gives.
    numbers = np.random.default_rng(None if seed is None else [seed, 1])
    self.action_space.seed(int(numbers.integers(2 ** 31)))
    for _ in range(numbers.integers(self._max_steps + 1)):
      observ, _, terminated, truncated, info = self.env.step(
          self.action_space.sample())
      if terminated or truncated:
        observ, info = self.env.reset(options=options)
    return observ, info


class StaggeredTimeLimit(gymnasium.Wrapper):
  """Truncates one episode, the one that begins with a certain seed.

  The info of its last step says so under "cut_short".

  Args:
    env: Whose other episodes stay as they are.
    seed: Of the reset that begins it.
    length: Its steps.
  """

  def __init__(self, env: gymnasium.Env, seed: int, length: int):
    super().__init__(env)
    self._seed = seed
    self.length = length
    self.left: int | None = None  # Steps, in that episode alone.

  def reset(self, *, seed: int | None = None, options: dict | None = None
            ) -> tuple[Any, dict]:
    self.left = self.length if seed == self._seed else None
    return self.env.reset(seed=seed, options=options)

  def step(self, action):
    if self.left is None:
      return self.env.step(action)
    observ, reward, terminated, truncated, info = self.env.step(action)
    self.left -= 1
    if not self.left and not (terminated or truncated):
      truncated, info = True, {**info, "cut_short": True}
    return observ, reward, terminated, truncated, info


class FrameDelta(gymnasium.Wrapper):
  """Observes the change since the last observation; the first is as it is."""

  def __init__(self, env: gymnasium.Env):
    super().__init__(env)
    space = env.observation_space
    if not (isinstance(space, gymnasium.spaces.Box)
            and np.issubdtype(space.dtype, np.floating)):
      raise TypeError(
          f"frame_delta wants a Box of floating-point type, not {space}.")
    self.observation_space = gymnasium.spaces.Box(
        -np.inf, np.inf, space.shape, np.float32)
    self._last: Any = None

  def reset(self, *, seed: int | None = None, options: dict | None = None
            ) -> tuple[Any, dict]:
    observ, info = self.env.reset(seed=seed, options=options)
    self._last = np.array(observ)
    return observ, info

  def step(self, action):
    observ, reward, terminated, truncated, info = self.env.step(action)
    observ, self._last = observ - self._last, np.array(observ)
    return observ, reward, terminated, truncated, info
