"""Block of environments that EnvPool steps in C++ threads."""

import collections
import contextlib
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agents import config as config_lib
from agents import spaces as spaces_lib
from agents.environments.blocks import base, custom_backend, envpool_memory
from agents.environments.data import episode_data
from agents.environments.making import envpool_env, make, vector_envs


class EnvPoolBlock(custom_backend.Backend):
  """Steps environments of EnvPool.

  By default, EnvPool spends a separate step on each reset. This block requests
  the reset within the step that ends an episode, so learning can use every
  step.

  EnvPool seeds only the first episode of an environment. Later episodes
  continue the environment's random number generator, so single episodes cannot
  be replayed. If an episode terminates in the step that reaches the time limit,
  EnvPool reports only the truncation, except for tasks with "terminated" in
  their infos.

  Args:
    args: See `Backend`.
    threads: Number of threads that step the environments.
  """

  limits = True

  def __init__(self, *args: Any, threads: int = 1) -> None:
    super().__init__(*args)
    self._config = self.constructors[0].config
    _check_spaces(self._config, self.spaces)
    self._leaves = spaces_lib.leaves(self.spaces[0])
    self._columns = spaces_lib.columns(self.arrays["observ"])
    self._threads = threads
    self._time_limit = make.stated_length(self._config) or make.DEFAULT_MAX_LENGTH
    self._pool: Any = None

  def reset(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Builds all environments again and begins their first episodes.

    Args:
      seeds: Seed of each environment.

    Returns:
      An empty dict for each environment.
    """
    self._pool = envpool_env.build(self._config, seeds, self._threads)
    self._write(self._pool.reset()[0], slice(None))
    self._lengths = np.zeros(len(seeds), np.int64)
    self._reward_parts: dict[str, np.ndarray] = collections.defaultdict(
      lambda: np.zeros(len(seeds))
    )
    # Time limits, which this block applies because some EnvPool tasks do not.
    self._limits = np.full(len(seeds), self._time_limit)
    for index, (seed, constructor) in enumerate(zip(seeds, self.constructors, strict=True)):
      if constructor.short and constructor.short[0] == seed:
        self._limits[index] = min(constructor.short[1], self._time_limit)
    return [{} for _ in seeds]

  def step_wait(self) -> dict[int, base.StepReport]:
    """Steps the active environments; see `Backend.step_wait`.

    Raises:
      EnvironmentFailure: If an observation or reward is not finite, unless
        failures are tolerated.
    """
    start = time.perf_counter()
    arrays = self.arrays
    arrays["valid"][:] = arrays["active"]
    for name in ("reward", "terminated", "truncated"):
      arrays[name][:] = 0
    actions = np.asarray(self.to_env(arrays["action"]))
    active = np.flatnonzero(arrays["active"]).astype(np.int32)
    reports = {}
    if len(active):
      self._pool.send(actions[active], active)
      reports = self._receive()
    arrays["seconds"][:] = (time.perf_counter() - start) / len(actions)
    return reports

  def close(self) -> None:
    """Closes all environments. Repeated calls have no effect."""
    self._pool = None

  def _receive(self) -> dict[int, base.StepReport]:
    """Writes the results of a step; returns reports of the ended episodes."""
    arrays = self.arrays
    observ, *result, info = self._pool.recv()
    rows = info["env_id"]
    self._write(observ, rows)
    for name, values in zip(("reward", "terminated", "truncated"), result, strict=True):
      arrays[name][rows] = values
    if "terminated" in info:  # Also true for terminations at the time limit.
      arrays["terminated"][rows] |= arrays["truncated"][rows] & (info["terminated"] != 0)
    self._lengths[rows] += 1
    for name, values in info.items():
      if name.startswith("reward_"):
        self._reward_parts[name][rows] += values
    at_limit = (self._lengths == self._limits) & ~(arrays["terminated"] | arrays["truncated"])
    arrays["truncated"] |= at_limit
    failed = ~np.isfinite(arrays["reward"])
    for column in self._columns:
      if column.dtype == np.float32:
        failed |= ~np.isfinite(column.reshape(len(failed), -1)).all(1)
    for name in ("valid", "reward", "terminated", "truncated"):
      arrays[name][failed] = 0
    ended = arrays["terminated"] | arrays["truncated"] | failed
    reports = {}
    for position in np.flatnonzero(ended[rows]).tolist():
      row = int(rows[position])
      outcome: dict[str, Any] | str
      if failed[row]:
        outcome = (
          f"Environment {self.first + row} ('{self._config.id}' of EnvPool, "
          f"step {self._lengths[row]} of its episode) returned a number that "
          "is not finite. Did the simulation become unstable?"
        )
        if not self.tolerant:
          raise base.EnvironmentFailure(outcome, self.first + row)
      else:
        numbers = {
          name: values[position]
          for name, values in info.items()
          if getattr(values, "ndim", None) == 1
        }
        if at_limit[row] and self._limits[row] < self._time_limit:
          numbers["cut_short"] = True
        outcome = {
          **episode_data.numbers(numbers),
          "reward_parts": {name: float(sums[row]) for name, sums in self._reward_parts.items()},
        }
      reports[self.first + row] = base.StepReport(outcome)
    if ended.any():
      self._begin_next(ended)
    return reports

  def _write(self, observ: Any, rows: Any) -> None:
    """Writes observations of the environments `rows` into the array."""
    for leaf, column in zip(self._leaves, self._columns, strict=True):
      column[rows] = vector_envs.part(observ, leaf.path)

  def _begin_next(self, ended: np.ndarray) -> None:
    """Begins the next episode of each environment for which `ended` is true."""
    arrays = self.arrays
    arrays["final_observ"][ended] = arrays["observ"][ended]
    observ, info = self._pool.reset(np.flatnonzero(ended).astype(np.int32))
    self._write(observ, info["env_id"])
    self._lengths[ended] = 0
    self._limits[ended] = self._time_limit
    for sums in self._reward_parts.values():
      sums[ended] = 0


def check(config: config_lib.Config) -> list[str]:
  """Checks whether EnvPool supports the settings of a config.

  Args:
    config: Config of the run.

  Returns:
    Notes for the user about the limits of EnvPool.

  Raises:
    ConfigError: If EnvPool is not installed, does not support a setting, or
      needs more memory than is available.
  """
  if envpool_env.is_native(config.env):
    notes = custom_backend.check(config, EnvPoolBlock, "single environments of EnvPool")
    envpool_env.spec(config.env)  # Raises an error if the settings are wrong.
    return notes + envpool_memory.check(config)
  notes = custom_backend.check(config, EnvPoolBlock)
  with contextlib.closing(make.MakeEnv(config.env)()) as env:
    spaces = env.observation_space, env.action_space
  _check_spaces(config.env, spaces)
  return notes


def _check_spaces(config: config_lib.Env, spaces: tuple[gymnasium.Space, gymnasium.Space]) -> None:
  """Raises ConfigError unless the task of EnvPool has the same spaces."""
  envpool_spaces = envpool_env.spaces(envpool_env.spec(config))
  for space, other in zip(spaces, envpool_spaces, strict=True):
    equal = space == other
    if isinstance(space, gymnasium.spaces.Box) and isinstance(other, gymnasium.spaces.Box):
      # Training ignores the bounds of observations; many of them are wrong.
      equal = space.shape == other.shape and (
        space is spaces[0] or np.allclose([space.low, space.high], [other.low, other.high])
      )
    if not equal:
      raise config_lib.ConfigError(
        f"env.backend=envpool: {config.id} has the space {other} in EnvPool, but {space} in "
        f"Gymnasium, where policies are evaluated. env.id={envpool_env.PREFIX}{config.id} "
        "evaluates them in EnvPool."
      )
