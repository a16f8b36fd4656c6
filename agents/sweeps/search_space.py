"""Which values of which settings a sweep tries."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import optuna

from agents import config as config_lib
from agents import config_parsing

_MOST_DRAWS = 100  # To find a config that goes together with a value.
_EXAMPLE = ("algorithm.learning_rate: {low: 1e-5, high: 1e-3, log: true}, or "
            "algorithm.minibatch_size: [32, 64, 128]")


@dataclasses.dataclass(frozen=True)
class _Bounds:
  """A range as it is written down."""

  low: float
  high: float
  log: bool = False  # Alike on a logarithmic scale.
  step: float | None = None  # From `low` on; None: any, 1 between integers.

  def __post_init__(self):
    if not (math.isfinite(self.low) and math.isfinite(self.high)
            and self.low < self.high):
      raise config_lib.ConfigError("`low` must be below `high`, both finite.")
    if self.log and self.low <= 0:
      raise config_lib.ConfigError("With `log`, `low` must be positive.")
    if self.step is not None and (self.log or not self.step > 0):
      raise config_lib.ConfigError("`step` must be positive, and there is none "
                                   "with `log`.")


class _Range:
  """Numbers between two bounds; integers if all that is said of it are."""

  def __init__(self, data: dict[str, Any], key: str):
    bounds = config_parsing.convert(_Bounds, data, key)
    numbers = [data[name] for name in ("low", "high", "step") if name in data]
    self._whole = all(isinstance(number, int) for number in numbers)
    self._bounds = bounds
    kind = int if self._whole else float
    self.examples = [kind(bounds.low), kind(bounds.high)]

  def suggest(self, trial: optuna.Trial, key: str) -> int | float:
    low, high, step = self._bounds.low, self._bounds.high, self._bounds.step
    if self._whole:
      return trial.suggest_int(key, int(low), int(high), log=self._bounds.log,
                               step=int(step or 1))
    return trial.suggest_float(key, low, high, log=self._bounds.log, step=step)

  def stored(self, example: Any) -> Any:
    """Return how the storage keeps a value."""
    return example


class _Choices:
  """A list of values; the storage keeps what is no scalar as its JSON."""

  def __init__(self, data: list[Any], key: str):
    if not data:
      raise config_lib.ConfigError(f"{key}: there is nothing to choose from.")
    self.examples = data
    self._values = {self.stored(value): value for value in data}

  def suggest(self, trial: optuna.Trial, key: str) -> Any:
    return self._values[trial.suggest_categorical(key, list(self._values))]

  def stored(self, example: Any) -> Any:
    """Return how the storage keeps a value."""
    scalar = isinstance(example, (bool, int, float, str, type(None)))
    return example if scalar else json.dumps(example)


class SearchSpace:
  """Settings by their dotted keys, each with the values to try.

  Args:
    text: YAML with a range or a list of choices for each key.
    source: Names the text in errors.
  Raises:
    ConfigError: If it can't be understood.
  """

  def __init__(self, text: str, source: str):
    try:
      self.data = config_parsing.parse(text)
      if not (isinstance(self.data, dict) and self.data):
        raise config_lib.ConfigError(f"expected lines such as {_EXAMPLE}.")
      self._dimensions = {
          key: self._dimension(key, data) for key, data in self.data.items()}
    except config_lib.ConfigError as error:
      raise config_lib.ConfigError(f"{source}: {error}") from None
    self._source = source

  def _dimension(self, key: Any, data: Any) -> _Range | _Choices:
    if key == "seed":
      raise config_lib.ConfigError("seed: every trial has one of its own.")
    if isinstance(data, dict):
      return _Range(data, key)
    if isinstance(data, list):
      return _Choices(data, key)
    raise config_lib.ConfigError(
        f"{key}: expected a range or choices, such as {_EXAMPLE}. Received: "
        f"{data!r}.")

  def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
    """Return the settings of a trial, by their dotted keys."""
    return {key: dimension.suggest(trial, key)
            for key, dimension in self._dimensions.items()}

  def check(self, build: Callable[[dict[str, Any]], Any]):
    """Find out whether each choice and bound can be part of a config.

    Args:
      build: Makes a config of settings, or raises ConfigError.
    Raises:
      ConfigError: If there is one that goes together with no others.
    """
    for key, dimension in self._dimensions.items():
      for example in dimension.examples:
        if error := self._error(key, dimension.stored(example), build):
          raise config_lib.ConfigError(
              f"{self._source}: {key}: {example!r} can't be: {error}")

  def _error(self, key: str, value: Any,
             build: Callable[[dict[str, Any]], Any]
             ) -> config_lib.ConfigError | None:
    """Return why a value can't be, with others drawn at random."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    failure = None
    for _ in range(_MOST_DRAWS):
      study.enqueue_trial({key: value})
      try:
        build(self.suggest(study.ask()))
        return None
      except config_lib.ConfigError as error:
        failure = error
    return failure
