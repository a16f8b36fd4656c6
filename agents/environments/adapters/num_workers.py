"""Chooses the number of processes that step a vector environment."""

import contextlib
import statistics
import time

import gymnasium

from agents.environments.workers import pool

_SECONDS_TO_WAKE = 150e-6  # For waking all workers and waiting for them.
_TRIAL_STEPS = 20
_TRIAL_SECONDS = 0.1  # Limit for these steps.


def choose(env: gymnasium.Env, num_envs: int) -> int:
  """Returns the number of processes with which a step takes the least time.

  Args:
    env: One of the environments; takes some random steps.
    num_envs: Number of environments.
  """
  num_cores = min(num_envs, pool.num_cores())
  if num_cores == 1:
    return 0
  seconds: list[float] = []
  with contextlib.suppress(Exception):  # Workers report errors later.
    env.reset(seed=0)
    env.action_space.seed(0)
    start = time.perf_counter()
    while len(seconds) < _TRIAL_STEPS and time.perf_counter() < start + _TRIAL_SECONDS:
      action, before = env.action_space.sample(), time.perf_counter()
      _, _, terminated, truncated, _ = env.step(action)
      seconds.append(time.perf_counter() - before)
      if terminated or truncated:
        env.reset()
  if not seconds:
    return num_cores
  saved = num_envs * statistics.median(seconds) * (1 - 1 / num_cores)
  return num_cores if saved > _SECONDS_TO_WAKE else 0
