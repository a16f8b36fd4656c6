"""Environment wrappers that Gymnasium does not contain."""

import sys
from collections.abc import Iterator
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from agents.environments.data import episode_data


def chain(env: gymnasium.Env) -> Iterator[gymnasium.Wrapper]:
  """Yields the wrappers of an environment, the outermost first.

  Args:
    env: Environment with its wrappers.
  """
  while isinstance(env, gymnasium.Wrapper):
    yield env
    env = env.env


class DefaultTimeLimit(gymnasium.wrappers.TimeLimit):
  """Truncates episodes of tasks that register no time limit."""

  @property
  def spec(self) -> Any:  # type: ignore[override]
    """Spec of the task, without this time limit."""
    return self.env.spec


class ActionRepeat(gymnasium.Wrapper):
  """Repeats each action and sums the rewards.

  Args:
    env: Environment to wrap.
    num_repeats: Steps of `env` for each action; fewer if the episode ends.
  """

  def __init__(self, env: gymnasium.Env, num_repeats: int) -> None:
    super().__init__(env)
    self._num_repeats = num_repeats

  def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Repeats the action until the episode ends; returns the sum of rewards."""
    total = 0.0
    reward_parts: dict[str, Any] = {}
    for _ in range(self._num_repeats):
      observ, reward, terminated, truncated, info = self.env.step(action)
      total += float(reward)
      episode_data.add_reward_parts(reward_parts, info)
      if terminated or truncated:
        break
    return observ, total, terminated, truncated, {**info, **reward_parts}


class RandomStart(gymnasium.Wrapper):
  """Takes random actions before the agent's first action.

  The seed of the reset determines number and values of the random actions.

  Args:
    env: Environment to wrap.
    max_steps: Largest number of random actions.
  """

  def __init__(self, env: gymnasium.Env, max_steps: int) -> None:
    super().__init__(env)
    self._max_steps = max_steps

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode with random actions; repeats the reset if it ends."""
    observ, info = self.env.reset(seed=seed, options=options)
    # With `seed` alone, this generator would draw the same numbers as the
    # environment's own generator.
    random = np.random.default_rng(None if seed is None else [seed, 1])
    self.action_space.seed(int(random.integers(2**31)))
    for _ in range(random.integers(self._max_steps + 1)):
      observ, _, terminated, truncated, info = self.env.step(self.action_space.sample())
      if terminated or truncated:
        observ, info = self.env.reset(options=options)
    return observ, info


class StaggeredTimeLimit(DefaultTimeLimit):
  """Truncates the one episode that begins with a given seed.

  The last info of the truncated episode contains "cut_short".

  Args:
    env: Environment to wrap. Other episodes do not change.
    seed: Seed of the reset that begins the episode.
    length: Number of steps after which the episode is truncated.
  """

  def __init__(self, env: gymnasium.Env, seed: int, length: int) -> None:
    super().__init__(env, length)
    self._limits: dict[int | None, int] = {seed: length}

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode, with a time limit if the seed is the given one."""
    self._max_episode_steps = self._limits.get(seed, sys.maxsize)
    return super().reset(seed=seed, options=options)

  def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
    """Truncates the selected episode at its time limit."""
    if self._max_episode_steps == sys.maxsize:
      return self.env.step(action)
    observ, reward, terminated, truncated, info = self.env.step(action)
    self._elapsed_steps += 1  # type: ignore
    if self._elapsed_steps == self._max_episode_steps and not (terminated or truncated):
      truncated, info = True, {**info, "cut_short": True}
    return observ, reward, terminated, truncated, info


class FrameDelta(gymnasium.ObservationWrapper):
  """Observes the difference between successive observations.

  The first observation of an episode is unchanged.

  Args:
    env: Environment with a Box of floats as observation space.

  Raises:
    TypeError: If the observation space is not a Box of floats.
  """

  def __init__(self, env: gymnasium.Env) -> None:
    super().__init__(env)
    space = env.observation_space
    if not (isinstance(space, gymnasium.spaces.Box) and np.issubdtype(space.dtype, np.floating)):
      raise TypeError(f"frame_delta needs a Box of floating-point type, not {space}.")
    self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, space.shape, np.float32)

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode and forgets the previous observation."""
    self._previous: Any = None
    return super().reset(seed=seed, options=options)

  def observation(self, observation: np.ndarray) -> np.ndarray:
    """Returns the difference to the previous observation of the episode.

    Args:
      observation: Observation of the wrapped environment.
    """
    previous, self._previous = self._previous, np.array(observation)
    return observation if previous is None else observation - previous


class ActionMask(gymnasium.Wrapper):
  """Observes the mask of allowed actions that an environment gives in infos.

  Observations become a Dict with the parts "observation" and "action_mask", for
  the setting `network.action_mask`.

  Args:
    env: Environment with Discrete or MultiDiscrete actions, whose infos contain
      "action_mask" after resets and steps.
  """

  def __init__(self, env: gymnasium.Env) -> None:
    super().__init__(env)
    sizes = getattr(env.action_space, "nvec", getattr(env.action_space, "n", None))
    if sizes is None or isinstance(env.action_space, gymnasium.spaces.MultiBinary):
      raise TypeError(
        f"ActionMask needs Discrete or MultiDiscrete actions, not {env.action_space}."
      )
    mask = gymnasium.spaces.MultiBinary(int(np.sum(sizes)))
    self.observation_space = gymnasium.spaces.Dict(
      {"observation": env.observation_space, "action_mask": mask}
    )

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode; adds the mask to the observation."""
    observ, info = self.env.reset(seed=seed, options=options)
    return self._observ(observ, info), info

  def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
    """Steps the environment; adds the mask to the observation."""
    observ, reward, terminated, truncated, info = self.env.step(action)
    return self._observ(observ, info), reward, terminated, truncated, info

  def _observ(self, observ: Any, info: dict[str, Any]) -> dict[str, Any]:
    if "action_mask" not in info:
      raise ValueError(
        "ActionMask needs an environment whose infos contain 'action_mask' after resets and "
        f"steps. Keys of this info: {sorted(info)}."
      )
    return {"observation": observ, "action_mask": np.ravel(info["action_mask"])}
