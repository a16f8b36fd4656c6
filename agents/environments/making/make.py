"""From the `env` section of a config to a Gymnasium environment."""

from __future__ import annotations

import dataclasses
import os
import sys
import traceback
import typing
from collections.abc import Callable
from typing import Any

import gymnasium

from agents import class_loader
from agents import config as config_lib
from agents import spaces
from agents.environments.data import episodes
from agents.environments.data import mujoco_warnings
from agents.environments.making import third_party
from agents.environments.making import wrappers

# Where no time limit is known: a policy may walk into a wall forever, and all
# would wait for it.
_MOST_STEPS = 10_000
_LIKE_IMAGES = 16  # Rows and columns.
_FRAMES_PER_SECOND = 30  # Where the environment doesn't say.


@dataclasses.dataclass(frozen=True)
class MakeEnv:
  """Builds one environment when called; travels to workers by pickle."""

  config: config_lib.Env
  render_mode: str | None = None
  short: tuple[int, int] | None = None  # Seed and length of one to truncate.

  def __str__(self) -> str:
    return self.config.id

  def __call__(self) -> gymnasium.Env:
    config = self.config
    kwargs = dict(config.kwargs)
    if self.render_mode:
      kwargs["render_mode"] = self.render_mode
    if "render_mode" in kwargs:  # Pygame looks for a display all the same.
      os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    mujoco_warnings.capture()
    third_party.register(config.id)
    if env_class := _find_class(config.id):
      env = env_class(**kwargs)
      if not isinstance(env, gymnasium.Env):
        raise TypeError(
            f"{config.id} returned {type(env).__name__}, not a gymnasium.Env.")
    else:
      # The checker inspects every step, which costs a tenth of the speed.
      limit = -1 if config.max_length else None
      env = gymnasium.make(
          config.id, max_episode_steps=limit, disable_env_checker=True,
          **kwargs)
    if self.render_mode and not any("camera" in key for key in kwargs):
      _follow_robot(env)
    for wrapper in config.wrappers:
      for name, arguments in wrapper.items():
        env = _find_wrapper(name)(env, **_tuples(arguments))
    if config.action_repeat > 1:
      env = wrappers.ActionRepeat(env, config.action_repeat)
    if config.random_start:
      env = wrappers.RandomStart(env, config.random_start)
    if config.frame_delta:
      env = wrappers.FrameDelta(env)
    if config.max_length:
      env = gymnasium.wrappers.TimeLimit(env, config.max_length)
    elif not _has_time_limit(env):
      env = wrappers.DefaultTimeLimit(env, _MOST_STEPS)
    if self.short:
      env = wrappers.StaggeredTimeLimit(env, *self.short)
    return env


def staggered(config: config_lib.Env, amount: int, seed: int) -> list[MakeEnv]:
  """Return constructors of environments that do not end together.

  Of episodes that all last as long, updates from short segments would see but
  one part at a time. So the first ones are truncated, after 1 / amount, 2 /
  amount, ... of the time limit; where there is none, they end as they like.

  Args:
    config: Which environment.
    amount: How many of them.
    seed: Of the run, from which the seeds of the episodes are derived.
  """
  try:
    longest = max_length(config)
  except config_lib.ConfigError:
    return [MakeEnv(config)] * amount
  return [MakeEnv(config, short=(
      episodes.episode_seed(seed, index, 0),
      -(-longest * (index + 1) // amount))) for index in range(amount)]


def check(config: config_lib.Env, filmed: bool = False) -> list[str]:
  """Build an environment and close it again, to see whether that works.

  Args:
    config: Which environment.
    filmed: Whether it has to draw itself, too.
  Returns:
    What the user should know although it works.
  Raises:
    ConfigError: If the id is unknown, or arguments or spaces don't fit.
  """
  if not config.id:
    raise config_lib.ConfigError(
        "env.id is empty: name an environment, such as HalfCheetah-v5.")
  try:
    env = MakeEnv(config)()
    modes = env.metadata.get("render_modes")
    try:
      spaces.check(env.observation_space, env.action_space)
    except TypeError as error:
      raise config_lib.ConfigError(f"env.id={config.id}: {error}") from None
    finally:
      env.close()
  except config_lib.ConfigError:
    raise
  except Exception as error:
    if not _is_users_mistake(error):
      raise
    raise config_lib.ConfigError(
        f"env.id={config.id}, env.kwargs={config.kwargs}: "
        f"{type(error).__name__}: {error}{_advice(error)}") from error
  if filmed and "rgb_array" not in (modes or ()):
    raise config_lib.ConfigError(
        f"{config.id} can't be filmed: it has no render mode 'rgb_array'. It "
        f"has: {modes}.")
  return [*_vectors(config.id, env), *_endless(config.id, env)]


def _vectors(env_id: str, env: gymnasium.Env) -> list[str]:
  """Return a note for each part of an observation that only looks an image."""
  return [
      f"{env_id} observes{leaf} {leaf.shape} of {leaf.dtype}, which networks "
      "see as a vector: images are of uint8, [H, W], [H, W, C] or [C, H, W], "
      "and at least 36 x 36."
      for leaf in spaces.leaves(env.observation_space)
      if not leaf.is_image and sorted((0, 0, *leaf.shape))[-2] >= _LIKE_IMAGES]


def _endless(env_id: str, env: gymnasium.Env) -> list[str]:
  """Return a note if nobody knows whether episodes end."""
  return [] if _has_time_limit(env) else [
      f"{env_id} declares no time limit; episodes that don't end by themselves "
      f"are truncated after {_MOST_STEPS:,} steps, or after env.max_length."]


def max_length(config: config_lib.Env) -> int:
  """Return the most steps of the agent that an episode can last.

  Raises:
    ConfigError: If no time limit is known.
  """
  if config.max_length:
    return config.max_length
  env = MakeEnv(config)()
  env.close()
  spec = env.spec
  if not (_has_time_limit(env) and spec and spec.max_episode_steps):
    raise config_lib.ConfigError(
        f"{config.id} registers no time limit, so there is no telling how much "
        "room a whole episode needs: set env.max_length, or learn from "
        "segments (algorithm.segment_length).")
  return -(-spec.max_episode_steps // config.action_repeat)


def stated_length(config: config_lib.Env) -> int | None:
  """Return the time limit, as far as it is known without an environment."""
  if config.max_length or config.id not in gymnasium.registry:
    return config.max_length
  steps = gymnasium.registry[config.id].max_episode_steps
  return steps and -(-steps // config.action_repeat)


def longest(config: config_lib.Env) -> int:
  """Return after how many steps every episode is truncated, if not before."""
  return stated_length(config) or _MOST_STEPS


def fps(config: config_lib.Env) -> float:
  """Return how many steps of the agent make a second, for a film."""
  env = MakeEnv(config)()
  env.close()
  return (env.metadata.get("render_fps") or _FRAMES_PER_SECOND
          ) / config.action_repeat


def _advice(error: Exception) -> str:
  """Return what brings a package that Gymnasium misses, if we know."""
  missing = isinstance(error, gymnasium.error.DependencyNotInstalled)
  return f" Or {third_party.advice('pixels')}." if missing and (
      "opencv" in str(error)) else ""


def _is_users_mistake(error: Exception) -> bool:
  """Whether the config asks for what isn't there.

  Other errors are raised within the user's own environment, and their
  traceback is what helps.
  """
  frames = traceback.extract_tb(error.__traceback__)
  ours = tuple(os.path.join(os.path.dirname(each), "")
               for each in (__file__, gymnasium.__file__))
  return isinstance(error, (gymnasium.error.Error, ImportError)) or (
      isinstance(error, (AssertionError, AttributeError, TypeError, ValueError,
                         OSError))
      and frames[-1].filename.startswith(ours))


def _has_time_limit(env: gymnasium.Env) -> bool:
  """Whether every episode is sure to end."""
  while isinstance(env, gymnasium.Wrapper):
    if isinstance(env, gymnasium.wrappers.TimeLimit):
      return not isinstance(env, wrappers.DefaultTimeLimit)
    env = env.env
  return False


def _follow_robot(env: gymnasium.Env):
  """Draw through the model's own camera, which moves along with the robot.

  Gymnasium draws through a free camera unless told otherwise, and that one
  stands still while a cheetah runs out of the picture.
  """
  renderer = getattr(env.unwrapped, "mujoco_renderer", None)
  if renderer is not None:
    mujoco = sys.modules["mujoco"]
    renderer.camera_id = mujoco.mj_name2id(
        renderer.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")


def _find_class(env_id: str) -> Callable[..., gymnasium.Env] | None:
  """Return the class that `module:Class` names, None for Gymnasium ids."""
  module_name, colon, name = env_id.partition(":")
  if not colon:
    return None
  found = class_loader.find(env_id)
  if found is not None:
    return _checked(found, env_id)
  registered = (key.rpartition("-v")[0] for key in gymnasium.registry)
  if name not in gymnasium.registry and name not in registered:
    raise AttributeError(
        f"{module_name} has no '{name}' and registers no environment of this "
        "name.")
  return None


def _find_wrapper(name: str) -> type[gymnasium.Wrapper]:
  """Return the wrapper of Gymnasium's that has a name, or `module:Class`."""
  full = name if ":" in name else f"gymnasium.wrappers:{name}"
  found = class_loader.find(full)
  if isinstance(found, type) and issubclass(found, gymnasium.Wrapper):
    return found
  raise TypeError(
      f"env.wrappers: {name} is no gymnasium.Wrapper.{class_loader.hint(full)}")


def _tuples(arguments: dict[str, Any]) -> dict[str, Any]:
  """Return arguments as wrappers want them; YAML has lists alone."""
  return {name: tuple(value) if isinstance(value, list) else value
          for name, value in arguments.items()}


def _checked(found: Any, env_id: str) -> Callable[..., gymnasium.Env]:
  """Return what builds environments, and refuse whatever else can be called.

  See `agents.class_loader` for why.
  """
  try:
    kind = typing.get_type_hints(found)["return"]
  except (AttributeError, NameError, KeyError, TypeError):
    kind = found
  if isinstance(kind, type) and issubclass(kind, gymnasium.Env):
    return found
  raise TypeError(
      f"{env_id} is neither a class of environments nor a function that says "
      "that it returns one (`-> gymnasium.Env`).")
