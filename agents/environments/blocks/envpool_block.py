"""A block of environments that EnvPool steps, in threads and in C++."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agents import config as config_lib
from agents import spaces as spaces_lib
from agents.environments.blocks import backend
from agents.environments.blocks import base
from agents.environments.data import episodes
from agents.environments.making import make
from agents.environments.making import third_party


class EnvPoolBlock(backend.Backend):
  """The same methods as `block.Block`, carried out by EnvPool.

  Where an episode ended, EnvPool would begin the next one in place of a step;
  here it is asked to do so at once, so that every step is one to learn from.

  Seeds of `reset` decide how everything goes on. But EnvPool draws the later
  episodes of an environment from where the ones before have left its random
  numbers, so there is no `replay` of an episode by itself. Nor does it say of
  an episode that ends with its time limit whether it also terminated.

  Args:
    constructors: Of the environments as Gymnasium has them; not called.
    first: Index of the first one within the batch.
    spaces: Observation and action space of Gymnasium's.
    arrays: Fields of `layout.batch_views` for these environments only.
    run_seed: Not needed, see above.
    tolerant: Break off episodes in which something is not finite, instead of
      raising an error.
    threads: That step them.
  """

  limits = True

  def __init__(
      self, constructors: Sequence[make.MakeEnv], first: int,
      spaces: tuple[gymnasium.Space, gymnasium.Space],
      arrays: dict[str, np.ndarray], run_seed: int, tolerant: bool = False,
      threads: int = 1):
    super().__init__(constructors, first, spaces, arrays, run_seed, tolerant)
    config = constructors[0].config
    spec = _spec(config)
    _check_spaces(config.id, spec, spaces)
    self._id = config.id
    self._make = functools.partial(
        _quietly, _library().make, config.id, env_type="gymnasium",
        num_envs=len(constructors), num_threads=threads, **_kwargs(config))
    self._action_type = spec.gymnasium_action_space.dtype
    self._short = [constructor.short or (-1, 0) for constructor in constructors]
    self._longest = make.stated_length(config) or make.DEFAULT_MAX_LENGTH
    self._pool: Any = None

  def reset(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Begin all anew, as the seeds say."""
    self._pool = self._make(seed=[int(seed) for seed in seeds])
    self.arrays["observ"][:] = self._pool.reset()[0]
    self._lengths = np.zeros(len(seeds), np.int64)
    self._parts: dict[str, np.ndarray] = {}
    # Steps to the truncation of each episode, which some of EnvPool's ignore.
    self._limits = np.array([
        min(length, self._longest) if seed == of else self._longest
        for seed, (of, length) in zip(seeds, self._short, strict=True)])
    return [{} for _ in seeds]

  def step_async(self):
    """Begin a step of those that are active."""
    self._start = time.perf_counter()
    actions = np.asarray(
        self.to_env(self.arrays["action"]), self._action_type)
    active = np.flatnonzero(self.arrays["active"]).astype(np.int32)
    self._stepping = len(active)
    if self._stepping:
      self._pool.send(actions[active], active)

  def step_wait(self) -> dict[int, base.StepReport]:
    """End a step, begin episodes where others ended; see `Block.step_wait`."""
    arrays = self.arrays
    arrays["valid"][:] = arrays["active"]
    for name in ("reward", "terminated", "truncated"):
      arrays[name][:] = 0
    reports = self._receive() if self._stepping else {}
    arrays["seconds"][:] = (
        time.perf_counter() - self._start) / len(arrays["seconds"])
    return reports

  def _receive(self) -> dict[int, base.StepReport]:
    arrays = self.arrays
    *answers, info = self._pool.recv()
    rows = info["env_id"]
    for name, values in zip(
        ("observ", "reward", "terminated", "truncated"), answers, strict=True):
      arrays[name][rows] = values
    self._lengths[rows] += 1
    self._count(rows, info)
    cut = (self._lengths == self._limits) & ~(
        arrays["terminated"] | arrays["truncated"])
    arrays["truncated"] |= cut
    broken = self._not_finite()
    ended = arrays["terminated"] | arrays["truncated"] | broken
    reports = {}
    for index, row in enumerate(rows.tolist()):
      if broken[row]:
        reports[self.first + row] = base.StepReport(self._failed(row))
      elif ended[row]:
        numbers = {name: value[index] for name, value in info.items()
                   if getattr(value, "ndim", None) == 1}
        if cut[row] and self._limits[row] < self._longest:
          numbers["cut_short"] = True
        reports[self.first + row] = base.StepReport({
            **episodes.numbers(numbers), "reward_parts": {
                name: float(part[row]) for name, part in self._parts.items()}})
    if ended.any():
      self._begin(ended)
    return reports

  def _begin(self, ended: np.ndarray):
    """Begin the next episode where one has ended, [N]."""
    arrays = self.arrays
    arrays["final_observ"][ended] = arrays["observ"][ended]
    observ, info = self._pool.reset(np.flatnonzero(ended).astype(np.int32))
    arrays["observ"][info["env_id"]] = observ
    self._lengths[ended] = 0
    self._limits[ended] = self._longest
    for part in self._parts.values():
      part[ended] = 0

  def _count(self, rows: np.ndarray, info: dict[str, Any]):
    """Sum what infos say of the reward."""
    for name, values in info.items():
      if name.startswith("reward_"):
        self._parts.setdefault(name, np.zeros(len(self._lengths)))
        self._parts[name][rows] += values

  def _not_finite(self) -> np.ndarray:
    """Return where nothing can be learned from a step, which is no end, [N]."""
    arrays, size = self.arrays, len(self._lengths)
    observ = arrays["observ"].reshape(size, -1)
    broken = ~(np.isfinite(observ).all(1) & np.isfinite(arrays["reward"]))
    for name in ("valid", "reward", "terminated", "truncated"):
      arrays[name][broken] = 0
    return broken

  def _failed(self, row: int) -> str:
    """Say what failed, or raise it where that is not tolerated."""
    index = self.first + row
    text = (f"Environment {index} ('{self._id}' of EnvPool, step "
            f"{self._lengths[row]} of its episode) returned what is not "
            "finite. Did the simulation become unstable?")
    if not self.tolerant:
      raise base.EnvironmentFailure(text, index)
    return text

  def close(self):
    """Let go of all environments. Can be repeated."""
    self._pool = None


def check(config: config_lib.Config) -> list[str]:
  """Return what the user should know of training with EnvPool.

  Raises:
    ConfigError: If it isn't installed, or can't do what is asked for.
  """
  notes = backend.check(config, EnvPoolBlock)
  env = make.MakeEnv(config.env)()
  env.close()
  _check_spaces(config.env.id, _spec(config.env),
                (env.observation_space, env.action_space))
  return notes


def _spec(config: config_lib.Env) -> Any:
  """Return what EnvPool says of an environment, without building one."""
  library = _library()
  if config.id not in library.list_all_envs():
    raise config_lib.ConfigError(
        f"env.backend=envpool: EnvPool has no {config.id}; without it, "
        "Gymnasium steps what there is.")
  try:
    return _quietly(library.make_spec, config.id, **_kwargs(config))
  except TypeError as error:
    raise config_lib.ConfigError(
        f"env.backend=envpool: EnvPool's {config.id} does not take these "
        f"arguments, {config.kwargs}: {error}") from error


def _library() -> Any:
  if not importlib.util.find_spec("envpool"):
    raise config_lib.ConfigError(
        "env.backend=envpool needs envpool: "
        f"{third_party.advice('envpool')}, on Linux, with Python 3.11 or newer.")
  return importlib.import_module("envpool")


def _quietly(function: Callable[..., Any], *args, **kwargs) -> Any:
  """Call a function that warns of how exact its bounds are."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    return function(*args, **kwargs)


def _kwargs(config: config_lib.Env) -> dict[str, Any]:
  limit = {"max_episode_steps": config.max_length} if config.max_length else {}
  return {**config.kwargs, **limit}


def _check_spaces(env_id: str, spec: Any,
                  spaces: tuple[gymnasium.Space, gymnasium.Space]):
  """Raise ConfigError unless EnvPool's environment is like Gymnasium's."""
  others = spec.gymnasium_observation_space, spec.gymnasium_action_space
  for mine, other in zip(spaces, others, strict=True):
    alike = mine == other and not spaces_lib.composite(mine)
    if isinstance(mine, gymnasium.spaces.Box) and isinstance(
        other, gymnasium.spaces.Box):
      # Nothing depends on bounds of observations, and many are wrong.
      alike = mine.shape == other.shape and (mine is spaces[0] or np.allclose(
          [mine.low, mine.high], [other.low, other.high]))
    if not alike:
      raise config_lib.ConfigError(
          f"env.backend=envpool: {env_id} has the space {other} in EnvPool, "
          f"but {mine} in Gymnasium, where policies are evaluated.")
