"""Builds vector environments, which step a batch of environments at once."""

import typing
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import vector
from gymnasium.vector import utils

from agents import class_loader, spaces
from agents import config as config_lib


def constructor(name: str) -> Callable[..., Any] | None:
  """Returns the user's constructor of vector environments.

  Args:
    name: `module:Class` or `module:function`. A function must have a class of
      vector environments as return annotation; see `class_loader`.

  Returns:
    The constructor, or None if the name is no constructor of this kind.
  """
  found = class_loader.find(name) if ":" in name else None
  return found if is_constructor(found) else None


def is_constructor(value: Any) -> bool:
  """Returns whether a class or function builds vector environments.

  Args:
    value: Class, function with return annotation, or any other object.
  """
  try:
    returned = typing.get_type_hints(value)["return"]
  except (AttributeError, NameError, KeyError, TypeError):
    returned = value
  return isinstance(returned, type) and issubclass(returned, vector.VectorEnv)


def make(config: config_lib.Env, num_envs: int) -> vector.VectorEnv:
  """Builds the vector environment that the `env` section of a config names.

  Args:
    config: Section `env` of the config.
    num_envs: Number of environments.

  Raises:
    ConfigError: If there is no such vector environment, or the package does not
      support it.
  """
  build = constructor(config.id)
  if build is None:
    spec = gymnasium.registry.get(config.id)
    if spec is None or spec.vector_entry_point is None:
      raise config_lib.ConfigError(
        f"env.backend=vector: {config.id} has no vector environment. Name an id with a "
        "`vector_entry_point`, or `module:function` with the return annotation "
        "`-> gymnasium.vector.VectorEnv`; or use env.backend=gymnasium."
      )
    envs = gymnasium.make_vec(
      config.id, num_envs, vectorization_mode="vector_entry_point", **config.kwargs
    )
  else:
    envs = build(num_envs=num_envs, **config.kwargs)
  _check(config.id, envs, num_envs)
  return envs


class SingleEnv(gymnasium.Env):
  """Presents a vector of one environment as this environment.

  Args:
    build: Function of `num_envs` and other arguments that returns a vector
      environment.
    kwargs: Other arguments of this function.
  """

  def __init__(self, build: Callable[..., Any], **kwargs: Any) -> None:
    self._envs: Any = build(num_envs=1, **kwargs)
    self.metadata, self.render_mode = self._envs.metadata, self._envs.render_mode
    self.observation_space = self._envs.single_observation_space
    self.action_space = self._envs.single_action_space

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode."""
    super().reset(seed=seed)
    observ, info = self._begin(seed, options)
    return self._first(observ), _first_info(info)

  def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Steps the environment; call `reset` when the episode has ended."""
    empty: Any = utils.create_empty_array(self.action_space, 1)
    actions = utils.concatenate(self.action_space, [action], empty)
    observ, reward, terminated, truncated, info = self._envs.step(actions)
    if "final_obs" in info:  # The vector has begun the next episode.
      observ, info = info["final_obs"], info.get("final_info", {})
    is_list = has_objects(observ)  # Of observations of single environments.
    return (
      observ[0] if is_list else self._first(observ),
      float(reward[0]),
      bool(terminated[0]),
      bool(truncated[0]),
      _first_info(info),
    )

  def render(self) -> Any:
    """Returns the frame of the environment."""
    return np.asarray(self._envs.render()[0])

  def close(self) -> None:
    """Closes the vector."""
    self._envs.close()

  def _begin(self, seed: int | None, options: dict | None) -> tuple[Any, dict]:
    """Resets the vector; returns its observations and infos."""
    return self._envs.reset(seed=seed, options=options)

  def _first(self, observ: Any) -> Any:
    parts = iter(part(observ, leaf.path)[0] for leaf in spaces.leaves(self.observation_space))
    return utils.create_empty_array(
      self.observation_space, 1, fn=lambda space, **_: np.asarray(next(parts))
    )


def part(batch: Any, path: tuple[str, ...]) -> Any:
  """Returns the part of a batch of observations that belongs to a leaf.

  Args:
    batch: Array, or nested dicts and tuples of arrays.
    path: Path of the leaf, see `spaces.Leaf`.
  """
  for key in path:
    batch = batch[key if isinstance(batch, dict) else int(key)]
  return batch


def has_objects(values: Any) -> bool:
  """Returns whether values are a NumPy array of Python objects."""
  return getattr(values, "dtype", None) == np.dtype(object)


def _first_info(info: dict[str, Any]) -> dict[str, Any]:
  """Returns the numbers of the first environment in infos of a vector."""
  return {
    key: values[0]
    for key, values in info.items()
    if not key.startswith("_") and np.ndim(values) and info.get(f"_{key}", [True])[0]
  }


def _check(name: str, envs: Any, num_envs: int) -> None:
  """Raises ConfigError if a vector environment is not supported."""

  def fail(problem: str) -> config_lib.ConfigError:
    return config_lib.ConfigError(f"env.backend=vector, env.id={name}: {problem}")

  if not isinstance(envs, vector.VectorEnv):
    raise fail(f"it returned {type(envs).__name__}, not a gymnasium.vector.VectorEnv.")
  if envs.num_envs != num_envs:
    raise fail(f"it has num_envs={envs.num_envs}, but the argument was num_envs={num_envs}.")
  mode = (envs.metadata or {}).get("autoreset_mode")
  if mode not in tuple(vector.AutoresetMode):
    raise fail(
      f"metadata['autoreset_mode'] is {mode!r}. Set it to the `gymnasium.vector.AutoresetMode` "
      "that the environment implements: NEXT_STEP, SAME_STEP or DISABLED."
    )
  for env in getattr(envs, "envs", ()):
    while isinstance(env, gymnasium.Wrapper):
      if isinstance(env, gymnasium.wrappers.Autoreset):
        raise fail(
          "its environments have the wrapper `Autoreset`, and the vector resets them, too. "
          "Remove the wrapper."
        )
      env = env.env
  try:
    spaces.check(envs.single_observation_space, envs.single_action_space)
  except TypeError as error:
    raise fail(str(error)) from error
