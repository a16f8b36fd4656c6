"""Which environments of a block can be stepped at once, and what that skips."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agents.environments.blocks import mujoco_tasks
from agents.environments.making import wrappers

_TRIAL_STEPS = 50
# Wrappers that do no more than count.
_COUNTERS = (gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.TimeLimit,
             wrappers.DefaultTimeLimit, wrappers.StaggeredTimeLimit)


def of(envs: Sequence[gymnasium.Env]) -> mujoco_tasks.Robots | None:
  """Return what steps these environments at once, if they can be.

  They must not have begun an episode that is to go on: to be sure that
  Gymnasium's own formulas are still the same, one of them is tried.

  Args:
    envs: Of a block, with their wrappers.
  """
  robots = [env.unwrapped for env in envs]
  kind = type(robots[0])
  found = mujoco_tasks.KINDS.get(f"{kind.__module__}:{kind.__qualname__}")
  if (not found or any(type(robot) is not kind for robot in robots)
      or not all(_is_plain(env) for env in envs)):
    return None
  settings = _settings(robots[0])
  if any(_settings(robot) != settings for robot in robots[1:]):
    return None
  return found(robots) if _same(found, robots[0]) else None


def limits(env: gymnasium.Env) -> tuple[int, int | None]:
  """Return after how many steps the episode is truncated, and is cut short.

  Args:
    env: With its wrappers, reset.
  """
  longest = sys.maxsize
  cut: int | None = None
  for wrapper in _wrappers(env):
    if isinstance(wrapper, gymnasium.wrappers.TimeLimit):
      longest = min(longest, wrapper._max_episode_steps)
    elif isinstance(wrapper, wrappers.StaggeredTimeLimit) and wrapper.left:
      cut = wrapper.length
  return longest, cut


def skip(env: gymnasium.Env, steps: int):
  """Let wrappers know of steps since the reset that were taken without them.

  Args:
    env: With its wrappers.
    steps: How many.
  """
  for wrapper in _wrappers(env):
    if isinstance(wrapper, gymnasium.wrappers.TimeLimit):
      wrapper._elapsed_steps = steps  # type: ignore[assignment]
    elif isinstance(wrapper, wrappers.StaggeredTimeLimit) and wrapper.left:
      wrapper.left = wrapper.length - steps


def _wrappers(env: gymnasium.Env) -> Iterator[Any]:
  while isinstance(env, gymnasium.Wrapper):
    yield env
    env = env.env


def _is_plain(env: gymnasium.Env) -> bool:
  """Whether a step is the robot's own but for its end."""
  return env.unwrapped.render_mode != "human" and all(
      type(wrapper) in _COUNTERS for wrapper in _wrappers(env))


def _settings(robot: Any) -> dict[str, Any]:
  """Return what its step depends on, beside model and data of its own."""
  settings = {
      name: np.asarray(value, dtype=object).tolist()
      for name, value in vars(robot).items()
      if isinstance(value, (bool, int, float, str, tuple, list, np.ndarray))
      and name != "_np_random_seed" and not name.startswith("_ezpickle")}
  return {**settings, "dt": robot.dt}


def _same(kind: type[mujoco_tasks.Robots], robot: Any) -> bool:
  """Whether a robot alone makes the same numbers, in steps at random."""
  actions = np.random.default_rng(0).uniform(
      robot.action_space.low, robot.action_space.high,
      (_TRIAL_STEPS, *robot.action_space.shape)).astype(
          robot.action_space.dtype)
  robot.reset(seed=0)
  alone = [robot.step(action) for action in actions]
  robot.reset(seed=0)
  together = kind([robot])
  for action, (observ, reward, terminated, _, info) in zip(
      actions, alone, strict=True):
    together.simulate(0, action)
    stepped = together.outcome([0], action[None])
    if not (np.array_equal(stepped.observ[0], observ)
            and stepped.reward[0] == reward
            and stepped.terminated[0] == terminated
            and stepped.numbers(0) == wrappers.numbers(info)):
      return False
  return True
