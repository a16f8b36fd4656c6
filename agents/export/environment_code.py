"""Writes Python code that builds the environment of a run, as `make` does."""

import dataclasses
import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.environments.making import envpool_env, make, third_party, varied_kwargs, vector_envs

_WRAPPERS = "agents.environments.making.wrappers"


class EnvironmentCode(NamedTuple):
  """Lines of code that define the variable `env`."""

  modules: list[str]  # To import.
  own_modules: list[str]  # Those that no package of `third_party` contains.
  statements: list[str]


def write(config: config_lib.Env) -> EnvironmentCode:
  """Writes code that needs this package only for the package's own wrappers.

  Args:
    config: Section `env` of the config. The environment was built before, so
      that its id is registered.

  Returns:
    The lines of code.
  """
  config = dataclasses.replace(config, kwargs=varied_kwargs.resolve(config.kwargs, 0, 0))
  family = third_party.find(config.id)
  known = {"gymnasium", *(family.modules if family else ())}
  modules = set(known)
  limit = config.max_length
  module, _, name = config.id.rpartition(":")
  if envpool_env.is_native(config):
    modules.add(envpool_env.__name__)
    arguments = {"max_episode_steps": limit} if limit else {}
    statements = [
      _call(f"{envpool_env.__name__}.make", f'"{config.id}"', config.kwargs | arguments)
    ]
    if not make.stated_length(config):
      limit = make.DEFAULT_MAX_LENGTH
  elif module and hasattr(importlib.import_module(module), name):
    modules.add(module)
    statements = [_call(f"{module}.{name}", "", config.kwargs)]
    if vector_envs.constructor(config.id):
      modules.add(vector_envs.__name__)
      statements = [_call(f"{vector_envs.__name__}.SingleEnv", f"{module}.{name}", config.kwargs)]
    limit = limit or make.DEFAULT_MAX_LENGTH
  else:
    no_limit = {"max_episode_steps": -1} if limit else {}
    statements = [_call("gymnasium.make", f'"{config.id}"', config.kwargs | no_limit)]
    if not make.stated_length(dataclasses.replace(config, id=name)):
      limit = make.DEFAULT_MAX_LENGTH
  for name, arguments in _wrappers(config, limit):
    module, _, name = name.rpartition(":")
    if module:
      modules.add(module)
    statements.append(_call(f"{module or 'gymnasium.wrappers'}.{name}", "env", arguments))
  own = {name for name in modules - known if name.partition(".")[0] not in ("agents", "gymnasium")}
  return EnvironmentCode(sorted(modules), sorted(own), statements)


def _wrappers(config: config_lib.Env, limit: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields names and arguments of the wrappers, the innermost first."""
  yield from make.named_wrappers(config)
  if config.action_repeat > 1:
    yield f"{_WRAPPERS}:ActionRepeat", {"num_repeats": config.action_repeat}
  if config.random_start:
    yield f"{_WRAPPERS}:RandomStart", {"max_steps": config.random_start}
  if config.frame_delta:
    yield f"{_WRAPPERS}:FrameDelta", {}
  if limit:
    yield "TimeLimit", {"max_episode_steps": limit}


def _call(name: str, first: str, arguments: dict[str, Any]) -> str:
  """Returns a statement that assigns the result of a call to `env`."""
  parts = [first] if first else []
  parts += [f"{key}={value!r}" for key, value in arguments.items()]
  return f"env = {name}({', '.join(parts)})"
