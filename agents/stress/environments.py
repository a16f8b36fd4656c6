"""Adds disturbances to the environment of a run."""

import dataclasses
from collections.abc import Iterable

from agents import config as config_lib
from agents.environments.making import domain_randomization, make
from agents.stress import disturbances

_WRAPPER = make.OWN_WRAPPERS["DomainRandomization"]


def undisturbed(env: config_lib.Env) -> config_lib.Env:
  """Returns the environment of the control group.

  Domain randomization of the run keeps only its observations: all its ranges
  contain only the values that leave the simulation unchanged. The time limit is
  outside of all wrappers, so that only terminated episodes are shorter.

  Args:
    env: Section `env` of the run; it passes `make.check`.
  """
  try:
    limit = make.max_length(env)
  except config_lib.ConfigError:  # The environment declares no limit.
    limit = make.DEFAULT_MAX_LENGTH
  nominal = {name: (value, value) for name, value in domain_randomization.NOMINAL.items()}
  wrappers = tuple(
    {
      name: {key: nominal.get(key, value) for key, value in arguments.items()}
      if name == _WRAPPER
      else arguments
    }
    for name, arguments in make.named_wrappers(env)
  )
  return dataclasses.replace(env, wrappers=wrappers, max_length=limit)


def disturbed(control: config_lib.Env, name: str, low: float, high: float) -> config_lib.Env:
  """Returns an environment with a disturbance.

  Args:
    control: Result of `undisturbed`.
    name: Name of the disturbance.
    low: Smallest level that an episode draws.
    high: Largest level that an episode draws.
  """
  # The innermost wrapper changes the simulation last, after the constant values
  # of `control`.
  wrapper = {_WRAPPER: {name: (low, high)}}
  return dataclasses.replace(control, wrappers=(wrapper, *control.wrappers))


def check(control: config_lib.Env, names: Iterable[str]) -> None:
  """Checks that an environment supports disturbances.

  Args:
    control: Result of `undisturbed`.
    names: Names of disturbances.

  Raises:
    ConfigError: If the environment does not simulate a MuJoCo model, the model
      becomes invalid, or a disturbance has no effect.
  """
  for name in names:
    levels = disturbances.DISTURBANCES[name].levels
    try:
      make.check(disturbed(control, name, min(levels), max(levels)))
    except config_lib.ConfigError as error:
      raise config_lib.ConfigError(
        f"The disturbance {name} is not possible: {error} --disturbances selects other ones."
      ) from error
    if name == "noise" and control.renders:
      raise config_lib.ConfigError(
        "The disturbance noise changes numbers, but this policy observes images. Select other "
        "ones, such as --disturbances push,friction."
      )
