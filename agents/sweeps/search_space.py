"""Search space of a sweep: settings, and the values to try for each."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import optuna

from agents import config as config_lib
from agents import config_parsing

_MAX_DRAWS = 100  # Random configs to find a valid one with a given value.
_EXAMPLE = ("algorithm.learning_rate: {low: 1e-5, high: 1e-3, log: true}, or "
            "algorithm.minibatch_size: [32, 64, 128]")


@dataclasses.dataclass(frozen=True)
class _Bounds:
  """Range of numbers as written in YAML."""

  low: float
  high: float
  log: bool = False  # Sample uniformly on a logarithmic scale.
  step: float | None = None  # Distance of values; None: 1 if integer, else any.

  def __post_init__(self):
    if not (math.isfinite(self.low) and math.isfinite(self.high)
            and self.low < self.high):
      raise config_lib.ConfigError("`low` must be below `high`, both finite.")
    if self.log and self.low <= 0:
      raise config_lib.ConfigError("With `log`, `low` must be positive.")
    if self.step is not None and (self.log or not self.step > 0):
      raise config_lib.ConfigError(
          "`step` must be positive, and can't be combined with `log`.")


class _Range:
  """Numbers between two bounds; integers if all numbers in YAML are.

  Attributes:
    examples: Values that must be valid.
  """

  def __init__(self, data: dict[str, Any], key: str):
    self._bounds = config_parsing.convert(_Bounds, data, key)
    self._integer = all(isinstance(data[name], int) for name in (
        "low", "high", "step") if name in data)
    number = int if self._integer else float
    self.examples = [number(self._bounds.low), number(self._bounds.high)]

  def suggest(self, trial: optuna.Trial, key: str) -> int | float:
    low, high, log = self._bounds.low, self._bounds.high, self._bounds.log
    step = self._bounds.step
    if self._integer:
      return trial.suggest_int(
          key, int(low), int(high), log=log, step=int(step or 1))
    return trial.suggest_float(key, low, high, log=log, step=step)


class _Choices:
  """List of values.

  Attributes:
    examples: Values that must be valid.
  """

  def __init__(self, data: list[Any], key: str):
    if not data:
      raise config_lib.ConfigError(f"{key}: the list of choices is empty.")
    self.examples = data
    self._values = {_stored(value): value for value in data}

  def suggest(self, trial: optuna.Trial, key: str) -> Any:
    return self._values[trial.suggest_categorical(key, list(self._values))]


class SearchSpace:
  """Settings by their dotted keys, each with the values to try.

  Args:
    text: YAML with a range or a list of choices for each key.
    source: Name of the text in errors, such as its path.
  Raises:
    ConfigError: If the text is invalid.
  """

  def __init__(self, text: str, source: str):
    self._source = source
    try:
      self.data = config_parsing.parse(text)
      if not (isinstance(self.data, dict) and self.data):
        raise config_lib.ConfigError(f"expected lines such as {_EXAMPLE}.")
      self._dimensions = {
          key: _dimension(key, data) for key, data in self.data.items()}
    except config_lib.ConfigError as error:
      raise config_lib.ConfigError(f"{source}: {error}") from None

  def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
    """Return the settings of a trial.

    Args:
      trial: Trial that the values are suggested for.
    Returns:
      Values by dotted key.
    """
    return {key: dimension.suggest(trial, key)
            for key, dimension in self._dimensions.items()}

  def check(self, build: Callable[[dict[str, Any]], Any]):
    """Check that each choice and bound is part of some valid config.

    Args:
      build: Builds a config from settings, or raises ConfigError.
    Raises:
      ConfigError: If a value is invalid in combination with all others.
    """
    for key, dimension in self._dimensions.items():
      for example in dimension.examples:
        if error := self._error(key, _stored(example), build):
          raise config_lib.ConfigError(
              f"{self._source}: {key}: {example!r} is invalid: {error}")

  def _error(self, key: str, value: Any,
             build: Callable[[dict[str, Any]], Any]
             ) -> config_lib.ConfigError | None:
    """Return the error of a value if it is invalid with all random others."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    last_error = None
    for _ in range(_MAX_DRAWS):
      study.enqueue_trial({key: value})
      try:
        build(self.suggest(study.ask()))
        return None
      except config_lib.ConfigError as error:
        last_error = error
    return last_error


def _dimension(key: Any, data: Any) -> _Range | _Choices:
  """Parse the values of one setting."""
  if key == "seed":
    raise config_lib.ConfigError("seed: every trial uses a different seed.")
  if isinstance(data, dict):
    return _Range(data, key)
  if isinstance(data, list):
    return _Choices(data, key)
  raise config_lib.ConfigError(
      f"{key}: expected a range or choices, such as {_EXAMPLE}. Received: "
      f"{data!r}.")


def _stored(value: Any) -> Any:
  """Return how Optuna stores a value: only scalars can be categories."""
  scalar = isinstance(value, (bool, int, float, str, type(None)))
  return value if scalar else json.dumps(value)
