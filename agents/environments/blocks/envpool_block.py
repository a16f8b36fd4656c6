"""Block of environments that EnvPool steps in C++ threads."""

import collections
import contextlib
import importlib
import importlib.util
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np

from agents import config as config_lib
from agents import spaces as spaces_lib
from agents.environments.blocks import base, custom_backend
from agents.environments.data import episode_data
from agents.environments.making import make, third_party


class EnvPoolBlock(custom_backend.Backend):
  """Steps the EnvPool versions of the configured Gymnasium environments.

  By default, EnvPool spends a separate step on each reset. This block requests
  the reset within the step that ends an episode, so learning can use every
  step.

  EnvPool seeds only the first episode of an environment. Later episodes
  continue the environment's random number generator, so single episodes cannot
  be replayed. If an episode terminates in the step that reaches the time limit,
  EnvPool reports only the truncation.

  Args:
    args: See `Backend`.
    threads: Number of threads that step the environments.
  """

  limits = True

  def __init__(self, *args: Any, threads: int = 1) -> None:
    super().__init__(*args)
    self._config = self.constructors[0].config
    _check_spaces(self._config, self.spaces)
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
    with _library() as library:
      self._pool = library.make(
        self._config.id,
        env_type="gymnasium",
        num_envs=len(seeds),
        num_threads=self._threads,
        seed=[int(seed) for seed in seeds],
        **_kwargs(self._config),
      )
    self.arrays["observ"][:] = self._pool.reset()[0]
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
    actions = np.asarray(self.to_env(arrays["action"]), self._pool.action_space.dtype)
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
    *result, info = self._pool.recv()
    rows = info["env_id"]
    for name, values in zip(("observ", "reward", "terminated", "truncated"), result, strict=True):
      arrays[name][rows] = values
    self._lengths[rows] += 1
    for name, values in info.items():
      if name.startswith("reward_"):
        self._reward_parts[name][rows] += values
    at_limit = (self._lengths == self._limits) & ~(arrays["terminated"] | arrays["truncated"])
    arrays["truncated"] |= at_limit
    observ = arrays["observ"].reshape(len(self._lengths), -1)
    failed = ~(np.isfinite(observ).all(1) & np.isfinite(arrays["reward"]))
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

  def _begin_next(self, ended: np.ndarray) -> None:
    """Begins the next episode of each environment for which `ended` is true."""
    arrays = self.arrays
    arrays["final_observ"][ended] = arrays["observ"][ended]
    observ, info = self._pool.reset(np.flatnonzero(ended).astype(np.int32))
    arrays["observ"][info["env_id"]] = observ
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
    ConfigError: If EnvPool is not installed or does not support a setting.
  """
  notes = custom_backend.check(config, EnvPoolBlock)
  with contextlib.closing(make.MakeEnv(config.env)()) as env:
    spaces = env.observation_space, env.action_space
  _check_spaces(config.env, spaces)
  return notes


@contextlib.contextmanager
def _library() -> Iterator[Any]:
  """Imports EnvPool and hides its warnings about the precision of bounds."""
  if not importlib.util.find_spec("envpool"):
    raise config_lib.ConfigError(
      "env.backend=envpool: the package envpool is not installed. It needs "
      f"Linux and Python 3.11 or newer: {third_party.advice('envpool')}."
    )
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    yield importlib.import_module("envpool")


def _kwargs(config: config_lib.Env) -> dict[str, Any]:
  limit = {"max_episode_steps": config.max_length} if config.max_length else {}
  return {**config.kwargs, **limit}


def _check_spaces(config: config_lib.Env, spaces: tuple[gymnasium.Space, gymnasium.Space]) -> None:
  """Raises ConfigError unless EnvPool has the task with the same spaces."""
  with _library() as library:
    if config.id not in library.list_all_envs():
      raise config_lib.ConfigError(
        f"env.backend=envpool: EnvPool has no {config.id}; use env.backend=gymnasium."
      )
    try:
      spec = library.make_spec(config.id, **_kwargs(config))
    except TypeError as error:
      raise config_lib.ConfigError(
        f"env.backend=envpool: EnvPool's {config.id} does not take these "
        f"arguments, {config.kwargs}: {error}"
      ) from error
  envpool_spaces = spec.gymnasium_observation_space, spec.gymnasium_action_space
  for space, other in zip(spaces, envpool_spaces, strict=True):
    equal = space == other and not spaces_lib.composite(space)
    if isinstance(space, gymnasium.spaces.Box) and isinstance(other, gymnasium.spaces.Box):
      # Training ignores the bounds of observations; many of them are wrong.
      equal = space.shape == other.shape and (
        space is spaces[0] or np.allclose([space.low, space.high], [other.low, other.high])
      )
    if not equal:
      raise config_lib.ConfigError(
        f"env.backend=envpool: {config.id} has the space {other} in EnvPool, "
        f"but {space} in Gymnasium, where policies are evaluated."
      )
