"""Tasks of EnvPool, and single environments of these tasks.

Policies are evaluated and filmed in single environments of EnvPool if Gymnasium
does not have the task.
"""

import contextlib
import ctypes
import difflib
import functools
import importlib
import importlib.metadata
import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs import registration

from agents import config as config_lib
from agents.environments.making import third_party, vector_envs

# Prefix of ids whose policies are evaluated in EnvPool, although Gymnasium has
# a task of the same name.
PREFIX = "envpool:"
_NO_LIMIT = 2**31 - 1  # EnvPool's `max_episode_steps` of tasks without limit.
_RENDER_KEYS = {"render_camera_id", "render_height", "render_mode", "render_width"}
# Arguments of a pool that other settings determine.
_OWN_KEYS = {
  "base_path",
  "batch_size",
  "env_seed",
  "gym_reset_return_info",
  "max_episode_steps",
  "max_num_players",
  "num_envs",
  "num_threads",
  "seed",
  "thread_affinity_offset",
}


class EnvPoolEnv(vector_envs.SingleEnv):
  """Presents a pool of one environment as this environment.

  EnvPool accepts a seed only when it builds a pool. A reset with a seed
  therefore builds the pool again.

  Args:
    config: Section `env` of the config.
    render_mode: "rgb_array" to render frames, or None.
  """

  def __init__(self, config: config_lib.Env, render_mode: str | None = None) -> None:
    task = spec(config)
    if render_mode:
      _load_egl()
    self._build = functools.partial(build, config, render_mode=render_mode)
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    super().__init__(lambda num_envs: self._build([seed]))
    self.observation_space, self.action_space = spaces(task)
    self.spec = registration.EnvSpec(
      config.id, f"{__name__}:make", max_episode_steps=time_limit(config)
    )
    self.metadata = {"render_modes": ["rgb_array"]}
    if seconds := getattr(task.config, "ctrl_dt", None):
      self.metadata["render_fps"] = round(1 / seconds)

  def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Steps the environment; call `reset` when the episode has ended."""
    observ, reward, terminated, truncated, info = super().step(action)
    # At the time limit, EnvPool reports terminations only in the info.
    terminated = terminated or (truncated and bool(info.get("terminated")))
    return observ, reward, terminated, truncated, info

  def render(self) -> Any:
    """Returns the frame of the environment.

    Raises:
      RuntimeError: If EnvPool cannot render the task.
    """
    try:
      return super().render()
    except RuntimeError as error:
      advice = (
        " EnvPool draws by EGL; on Debian and Ubuntu, install it with `apt-get install libegl1`."
        if "EGL" in str(error)
        else ""
      )
      raise RuntimeError(f"EnvPool can't render this task: {error}.{advice}") from error

  def _begin(self, seed: int | None, options: dict | None) -> tuple[Any, dict]:
    if seed is not None:
      self._envs = None  # Frees the memory before the next pool needs it.
      self._envs = self._build([seed])
    return self._envs.reset()


def make(
  env_id: str, max_episode_steps: int | None = None, render_mode: str | None = None, **kwargs: Any
) -> gymnasium.Env:
  """Returns one environment of a task, with the time limit of the task.

  Args:
    env_id: Id of the task, with or without `PREFIX`.
    max_episode_steps: Steps until truncation; None for the limit of the task.
    render_mode: "rgb_array" to render frames, or None.
    kwargs: Other arguments of the task.

  Raises:
    ConfigError: See `spec`.
  """
  env = EnvPoolEnv(
    config_lib.Env(env_id, kwargs, max_episode_steps, backend="envpool"), render_mode
  )
  limit = env.spec and env.spec.max_episode_steps
  return gymnasium.wrappers.TimeLimit(env, limit) if limit else env


def is_native(config: config_lib.Env) -> bool:
  """Returns whether policies are evaluated in EnvPool instead of Gymnasium.

  Args:
    config: Section `env` of the config.
  """
  return config.backend == "envpool" and (
    config.id.startswith(PREFIX) or config.id not in gymnasium.registry
  )


def build(
  config: config_lib.Env, seeds: Sequence[int], threads: int = 1, render_mode: str | None = None
) -> Any:
  """Returns a new pool of environments.

  Args:
    config: Section `env` of the config.
    seeds: Seed of each environment. EnvPool stores the lowest 31 bits.
    threads: Number of threads that step the environments.
    render_mode: "rgb_array" to render frames, or None.
  """
  arguments = _arguments(config) | ({"render_mode": render_mode} if render_mode else {})
  with _library() as library:
    pool = library.make(
      config.id.removeprefix(PREFIX),
      env_type="gymnasium",
      num_envs=len(seeds),
      num_threads=threads,
      seed=[int(seed) & 0x7FFFFFFF for seed in seeds],
      **arguments,
    )
    _ = pool.observation_space, pool.action_space  # Only the first access warns.
    return pool


def spec(config: config_lib.Env) -> Any:
  """Returns EnvPool's description of a task: its spaces and settings.

  Args:
    config: Section `env` of the config.

  Raises:
    ConfigError: If EnvPool is not installed, has no such task, or the task does
      not accept `env.kwargs`, or has several players.
  """
  name = config.id.removeprefix(PREFIX)

  def fail(problem: str) -> config_lib.ConfigError:
    return config_lib.ConfigError(f"env.backend=envpool: {problem}")

  with _library() as library:
    names = library.list_all_envs()
    if name not in names:
      similar = difflib.get_close_matches(name, names)
      hint = f" Similar ids of EnvPool: {', '.join(similar)}." if similar else ""
      raise fail(f"EnvPool has no {name}; use env.backend=gymnasium.{hint}")
    known = {*library.make_spec(name).config._fields} - _OWN_KEYS
    for key in sorted(config.kwargs.keys() - known - _RENDER_KEYS):
      own = " Use num_envs, num_workers, seed or env.max_length." if key in _OWN_KEYS else ""
      raise fail(
        f"EnvPool's {name} does not take the argument '{key}' of env.kwargs.{own} It takes: "
        f"{', '.join(sorted(known | _RENDER_KEYS))}."
      )
    try:
      task = library.make_spec(name, **_arguments(config))
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
      raise fail(f"EnvPool's {name} does not accept env.kwargs={config.kwargs}: {error}") from error
  if task.config.max_num_players > 1:
    raise fail(
      f"{name} is a game of {task.config.max_num_players} players, but a policy here is the only "
      "player of its environment."
    )
  return task


def spaces(task: Any) -> tuple[gymnasium.Space, gymnasium.Space]:
  """Returns observation and action space of a task.

  A Box of integers becomes MultiDiscrete, because actions are choices.

  Args:
    task: Result of `spec`.
  """
  with _quiet():
    observation, action = task.gymnasium_observation_space, task.gymnasium_action_space
  if isinstance(action, gymnasium.spaces.Box) and np.issubdtype(action.dtype, np.integer):
    low, high = action.low.astype(np.int64), action.high.astype(np.int64)
    action = gymnasium.spaces.MultiDiscrete(high - low + 1, start=low)
  return observation, action


def time_limit(config: config_lib.Env) -> int | None:
  """Returns the time limit of a task in steps, or None if there is none.

  Args:
    config: Section `env` of the config.
  """
  limit = spec(config).config.max_episode_steps
  return None if limit >= _NO_LIMIT else limit


@contextlib.contextmanager
def _library() -> Iterator[Any]:
  """Imports EnvPool, and hides its warnings."""
  if not importlib.util.find_spec("envpool"):
    raise config_lib.ConfigError(
      "env.backend=envpool: the package envpool is not installed. It needs "
      f"Linux and Python 3.11 or newer: {third_party.advice('envpool')}."
    )
  with _quiet():
    yield importlib.import_module("envpool")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Hides warnings, such as those about the precision of bounds."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    yield


def _arguments(config: config_lib.Env) -> dict[str, Any]:
  limit = {"max_episode_steps": config.max_length} if config.max_length else {}
  return {**config.kwargs, **limit}


def _load_egl() -> None:
  """Makes EnvPool's own copy of EGL visible to EnvPool's MuJoCo.

  MuJoCo looks for the functions of EGL among the global symbols of the process.
  Without them, MuJoCo ends the process. EnvPool does not load its copy of EGL
  as global, and the contexts of one copy are unknown to other copies.
  """
  for file in importlib.metadata.files("envpool") or ():
    if file.name.startswith("libEGL"):
      ctypes.CDLL(str(file.locate()), ctypes.RTLD_GLOBAL)
