"""Builds the Gymnasium environment that the `env` section of a config names."""

import contextlib
import dataclasses
import functools
import os
import sys
import traceback
import typing
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium

from agents import class_loader, spaces
from agents import config as config_lib
from agents.environments.data import episode_data, mujoco_warnings, tensorflow_log
from agents.environments.making import (
  domain_randomization,
  envpool_env,
  mujoco_version,
  third_party,
  varied_kwargs,
  vector_envs,
  wrappers,
)

# Time limit of tasks that declare none, in steps. Without a limit, one endless
# episode would block an evaluation.
DEFAULT_MAX_LENGTH = 10_000
_DEFAULT_FPS = 30
_UNKNOWN_ID = gymnasium.error.NameNotFound, gymnasium.error.NamespaceNotFound
# Wrappers of this package that `env.wrappers` can name without their module.
OWN_WRAPPERS = {
  name: f"agents.environments.making.{module}:{name}"
  for name, module in {
    "ActionMask": "wrappers",
    "DomainRandomization": "domain_randomization",
    "Pixels": "pixels",
  }.items()
}
# Observations with two dimensions of at least this size may be images.
_IMAGE_LIKE_SIDE = 16


@dataclasses.dataclass(frozen=True)
class MakeEnv:
  """Builds one environment; can be pickled and sent to workers.

  Args:
    config: Section `env` of the config.
    render_mode: Render mode of the environment, such as "rgb_array".
    short: Seed of an episode to truncate early, and the length of this episode
      in steps.
    seed: Seed of the run. With `index`, it determines the arguments that differ
      between environments.
    index: Index of the environment within its batch.
  """

  config: config_lib.Env
  render_mode: str | None = None
  short: tuple[int, int] | None = None
  seed: int = 0
  index: int = 0

  def __str__(self) -> str:
    return self.config.id

  def __call__(self, index: int | None = None) -> gymnasium.Env:
    """Returns a new environment with all wrappers of the config.

    Args:
      index: Index of the environment within its batch; `self.index` by default.
    """
    config = self.config
    index = self.index if index is None else index
    kwargs = varied_kwargs.resolve(config.kwargs, self.seed, index)
    if self.render_mode:
      kwargs["render_mode"] = self.render_mode
    if "render_mode" in kwargs:  # Pygame needs a driver even without a window.
      os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    mujoco_warnings.capture()
    tensorflow_log.hide_at_import()
    env = _find_constructor(config)(**kwargs)
    if not isinstance(env, gymnasium.Env):
      raise TypeError(f"{config.id} returned {type(env).__name__}, not a gymnasium.Env.")
    renderer = getattr(env.unwrapped, "mujoco_renderer", None)
    if self.render_mode and renderer and not any("camera" in key for key in kwargs):
      # The default camera does not follow robots, which then leave the picture.
      mujoco = sys.modules["mujoco"]
      renderer.camera_id = mujoco.mj_name2id(renderer.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    for name, arguments in named_wrappers(config):
      wrapper_class = class_loader.find_class(
        "env.wrappers", name if ":" in name else f"gymnasium.wrappers:{name}", gymnasium.Wrapper
      )
      env = wrapper_class(env, **arguments)
    if config.action_repeat > 1:
      env = wrappers.ActionRepeat(env, config.action_repeat)
    if config.random_start:
      env = wrappers.RandomStart(env, config.random_start)
    if config.frame_delta:
      env = wrappers.FrameDelta(env)
    if config.max_length:
      env = gymnasium.wrappers.TimeLimit(env, config.max_length)
    elif not _time_limits(env):
      env = wrappers.DefaultTimeLimit(env, DEFAULT_MAX_LENGTH)
    if self.short:
      env = wrappers.StaggeredTimeLimit(env, *self.short)
    return env


def named_wrappers(config: config_lib.Env) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields names and arguments of the wrappers in `env.wrappers`.

  Wrappers of this package are yielded as `module:Class`.

  Args:
    config: Section `env` of the config. YAML has no tuples, so lists among the
      arguments become tuples.
  """
  for wrapper in config.wrappers:
    for name, arguments in wrapper.items():
      yield (
        OWN_WRAPPERS.get(name, name),
        {
          key: tuple(value) if isinstance(value, list) else value
          for key, value in arguments.items()
        },
      )


def constructors(config: config_lib.Env, num_envs: int, seed: int) -> list[MakeEnv]:
  """Returns the constructors of the environments of a batch.

  Args:
    config: Section `env` of the config.
    num_envs: Number of environments.
    seed: Seed of the run.
  """
  return [MakeEnv(config, seed=seed, index=index) for index in range(num_envs)]


def staggered(config: config_lib.Env, num_envs: int, seed: int) -> list[MakeEnv]:
  """Returns constructors of environments with first episodes of unequal length.

  Episodes of equal length would end together, and an update from short segments
  would contain only one phase of the episodes. Therefore the first episodes are
  truncated after 1 / num_envs, 2 / num_envs, ... of the time limit. Episodes of
  tasks without a time limit are not truncated.

  Args:
    config: Section `env` of the config.
    num_envs: Number of environments.
    seed: Seed of the run, from which the seeds of episodes are derived.
  """
  try:
    limit = max_length(config)
  except config_lib.ConfigError:
    return constructors(config, num_envs, seed)
  return [
    dataclasses.replace(
      constructor,
      short=(episode_data.episode_seed(seed, index, 0), -(-limit * (index + 1) // num_envs)),
    )
    for index, constructor in enumerate(constructors(config, num_envs, seed))
  ]


@contextlib.contextmanager
def exits_as_errors() -> Iterator[None]:
  """Context that raises an error if an environment calls `sys.exit`.

  Otherwise, the program would end without a message.

  Yields:
    None.

  Raises:
    RuntimeError: If the context raises SystemExit.
  """
  try:
    yield
  except SystemExit as error:
    raise RuntimeError(f"The environment has called sys.exit({error.code!r}).") from error


@exits_as_errors()
def check(config: config_lib.Env, needs_rendering: bool = False) -> list[str]:
  """Checks a config by building its environment.

  Args:
    config: Section `env` of the config.
    needs_rendering: Whether the environment must render images.

  Returns:
    Notes for the user on a valid config, such as a missing time limit.

  Raises:
    ConfigError: If the id is unknown, or arguments or spaces are not supported.
  """
  if not config.id:
    raise config_lib.ConfigError(
      "env.id is empty. Name an environment, such as --set env.id=HalfCheetah-v5."
    )
  try:
    with contextlib.closing(MakeEnv(config)()) as env:
      spaces.check(env.observation_space, env.action_space)
  except Exception as error:
    if not _is_config_mistake(error):
      raise
    advice = ""
    if isinstance(error, ModuleNotFoundError):
      advice = f". {class_loader.PLACES}"
    elif "opencv" in str(error):
      advice = f" Or {third_party.advice('pixels')}."
    elif config.backend == "envpool" and not envpool_env.is_native(config):
      advice = (
        f". Gymnasium can't evaluate the policy; env.id={envpool_env.PREFIX}{config.id} evaluates "
        "it in EnvPool."
      )
    elif isinstance(error, _UNKNOWN_ID) and "Did you mean" not in str(error):
      advice = f" If a package registers this id, name its module: env.id=MODULE:{config.id}."
    # Some errors of Gymnasium have no text; their line of code explains them.
    text = str(error) or traceback.extract_tb(error.__traceback__)[-1].line
    raise config_lib.ConfigError(
      f"env.id={config.id}, env.kwargs={config.kwargs}: {type(error).__name__}: {text}{advice}"
    ) from error
  modes = env.metadata.get("render_modes") or ()
  if needs_rendering and "rgb_array" not in modes:
    raise config_lib.ConfigError(
      f"{config.id} can't be rendered: it has no render mode 'rgb_array'. "
      f"Its render modes are {modes}."
    )
  notes = [
    f"{config.id}: the observation{leaf} has shape {leaf.shape} and type "
    f"{leaf.dtype}, so networks treat it as a vector. Images must have type "
    "uint8, shape [H, W], [H, W, C] or [C, H, W], and at least 36 x 36 "
    "pixels."
    for leaf in spaces.leaves(env.observation_space)
    if not leaf.is_image and sorted((0, 0, *leaf.shape))[-2] >= _IMAGE_LIKE_SIDE
  ]
  notes += [
    f"{config.id}: latency, noise, pushes and observed values of DomainRandomization need "
    "separate steps of each environment, which take longer than vectorized steps."
    for wrapper in wrappers.chain(env)
    if isinstance(wrapper, domain_randomization.DomainRandomization)
    and not wrapper.changes_only_model
  ]
  notes += mujoco_version.notes(env)
  if not _time_limits(env):
    notes.append(
      f"{config.id} declares no time limit. Episodes that do not end by "
      f"themselves are truncated after {DEFAULT_MAX_LENGTH:,} steps; set "
      "env.max_length to change this."
    )
  return notes


def max_length(config: config_lib.Env) -> int:
  """Returns the time limit of an episode, in steps of the agent.

  Args:
    config: Section `env` of the config.

  Raises:
    ConfigError: If no time limit is known.
  """
  if config.max_length:
    return config.max_length
  env = MakeEnv(config)()
  env.close()
  limit = time_limit(env, config)
  if not limit:
    raise config_lib.ConfigError(
      f"{config.id} registers no time limit, so the length of an episode is "
      "unknown: set env.max_length, or learn from segments "
      "(algorithm.segment_length)."
    )
  return limit


def time_limit(env: gymnasium.Env, config: config_lib.Env) -> int | None:
  """Returns the time limit of an environment, in steps of the agent, if known.

  Args:
    env: Environment that was built from `config`.
    config: Section `env` of the config.
  """
  if config.max_length:
    return config.max_length
  limits = _time_limits(env)
  return -(-min(limits) // config.action_repeat) if limits else None


def stated_length(config: config_lib.Env) -> int | None:
  """Returns the configured or registered time limit, in steps of the agent.

  Does not build the environment. Returns None if neither limit exists.

  Args:
    config: Section `env` of the config.
  """
  if envpool_env.is_native(config):
    return config.max_length or envpool_env.time_limit(config)
  if config.max_length or config.id not in gymnasium.registry:
    return config.max_length
  steps = gymnasium.registry[config.id].max_episode_steps
  return steps and -(-steps // config.action_repeat)


def fps(config: config_lib.Env) -> float:
  """Returns the frame rate of a video with one frame per step of the agent.

  Args:
    config: Section `env` of the config.
  """
  env = MakeEnv(config)()
  env.close()
  return (env.metadata.get("render_fps") or _DEFAULT_FPS) / config.action_repeat


def _is_config_mistake(error: Exception) -> bool:
  """Returns whether a mistake in the config caused an error.

  Other errors come from the environment's own code and need a traceback.
  """
  if isinstance(error, config_lib.ConfigError):
    return False  # The message already names the mistake.
  if isinstance(error, (gymnasium.error.Error, ImportError)):
    return True
  *_, (frame, _) = traceback.walk_tb(error.__traceback__)
  return frame.f_globals.get("__name__", "").startswith(
    ("agents.environments.making.", "agents.spaces", "gymnasium.")
  ) and isinstance(error, (AssertionError, AttributeError, TypeError, ValueError, OSError))


def _time_limits(env: gymnasium.Env) -> list[int]:
  """Returns the time limits from task and config, in steps of the simulator.

  A limit from `env.max_length` is in steps of the agent.
  """
  return [
    wrapper._max_episode_steps
    for wrapper in wrappers.chain(env)
    if isinstance(wrapper, gymnasium.wrappers.TimeLimit)
    and not isinstance(wrapper, wrappers.DefaultTimeLimit)
  ]


def _find_constructor(config: config_lib.Env) -> Callable[..., Any]:
  """Returns the function that builds the environment with the id of a config.

  An id `module:name` must name an environment class, or a function with an
  environment class as return annotation; see `class_loader` for the reason.
  """
  if envpool_env.is_native(config):
    envpool_env.spec(config)  # Raises an error if `env.kwargs` are wrong.
    return functools.partial(envpool_env.make, config.id, config.max_length)
  third_party.register(config.id)
  module, colon, name = config.id.partition(":")
  constructor = class_loader.find(config.id) if colon else None
  if constructor is None:
    if colon and not any(name in (key, key.rpartition("-v")[0]) for key in gymnasium.registry):
      raise AttributeError(
        f"{module} has no '{name}' and registers no environment of this "
        f"name.{class_loader.hint(config.id)}"
      )
    # Gymnasium's checker inspects every step and costs a tenth of the speed.
    return functools.partial(
      gymnasium.make,
      config.id,
      disable_env_checker=True,
      max_episode_steps=-1 if config.max_length else None,
    )
  if vector_envs.is_constructor(constructor):
    return functools.partial(vector_envs.SingleEnv, constructor)
  try:
    env_class = typing.get_type_hints(constructor)["return"]
  except (AttributeError, NameError, KeyError, TypeError):
    env_class = constructor
  if isinstance(env_class, type) and issubclass(env_class, gymnasium.Env):
    return constructor
  raise TypeError(
    f"{config.id} must be an environment class, or a function with the "
    "return annotation `-> gymnasium.Env`."
  )
