"""Search space of a sweep: settings, and the values to try for each."""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import optuna

from agents import config as config_lib
from agents import config_parsing

_MAX_DRAWS = 100  # Maximum number of random configs to test for each value.
_EXAMPLE = (
  "algorithm.learning_rate: {low: 1e-5, high: 1e-3, log: true}, or "
  "algorithm.minibatch_size: [32, 64, 128]"
)


@dataclasses.dataclass(frozen=True)
class _Range:
  """Range of numbers, including both bounds."""

  low: float
  high: float
  log: bool = False  # Whether to sample uniformly on a logarithmic scale.
  step: float | None = None  # Distance between neighboring values.

  def __post_init__(self) -> None:
    if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
      raise config_lib.ConfigError("`low` must be below `high`, and both must be finite.")
    if self.log and self.low <= 0:
      raise config_lib.ConfigError("With `log`, `low` must be positive.")
    if self.step is not None and (self.log or not self.step > 0):
      raise config_lib.ConfigError("`step` must be positive, and can't be combined with `log`.")


class _Dimension(NamedTuple):
  """Values to try for a setting."""

  examples: list[Any]  # All choices, or both bounds, for `SearchSpace.check`.
  suggest: Callable[[optuna.Trial], Any]  # Returns the value for a trial.


class SearchSpace:
  """Settings by dotted key, each with the values to try.

  Attributes:
    data: Content of the YAML text.

  Args:
    text: YAML with a range or a list of choices for each key.
    source: Path of the text, for error messages.

  Raises:
    ConfigError: If the text is invalid.
  """

  def __init__(self, text: str, source: str) -> None:
    self._source = source
    try:
      self.data = config_parsing.parse(text)
      if not (isinstance(self.data, dict) and self.data):
        raise config_lib.ConfigError(f"expected lines such as {_EXAMPLE}.")
      self._dimensions = {key: _dimension(key, data) for key, data in self.data.items()}
    except config_lib.ConfigError as error:
      raise config_lib.ConfigError(f"{source}: {error}") from None

  def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
    """Suggests the settings of a trial.

    Args:
      trial: New trial of a study.

    Returns:
      Suggested values by dotted key.
    """
    return {key: dimension.suggest(trial) for key, dimension in self._dimensions.items()}

  def check(self, build: Callable[[dict[str, Any]], Any]) -> None:
    """Checks that each choice and bound is part of at least one valid config.

    Args:
      build: Builds a config from settings, or raises ConfigError.

    Raises:
      ConfigError: If no sampled config with one of the values is valid.
    """
    for key, dimension in self._dimensions.items():
      for example in dimension.examples:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(_MAX_DRAWS):
          study.enqueue_trial({key: _stored(example)})
          try:
            build(self.suggest(study.ask()))
            break
          except config_lib.ConfigError as error:
            reason = error
        else:
          raise config_lib.ConfigError(f"{self._source}: {key}: {example!r} is invalid: {reason}")


def _dimension(key: Any, data: Any) -> _Dimension:
  """Parses the values of one setting."""
  if key == "seed":
    raise config_lib.ConfigError("seed: every trial uses a different seed.")
  if isinstance(data, dict):
    value_range = config_parsing.convert(_Range, data, key)
    if all(isinstance(data[name], int) for name in ("low", "high", "step") if name in data):
      low, high, step = data["low"], data["high"], data.get("step", 1)
      return _Dimension(
        [low, high], lambda trial: trial.suggest_int(key, low, high, log=value_range.log, step=step)
      )
    return _Dimension(
      [value_range.low, value_range.high],
      lambda trial: trial.suggest_float(
        key, value_range.low, value_range.high, log=value_range.log, step=value_range.step
      ),
    )
  if not isinstance(data, list):
    raise config_lib.ConfigError(
      f"{key}: expected a range or choices, such as {_EXAMPLE}. Received: {data!r}."
    )
  if not data:
    raise config_lib.ConfigError(f"{key}: the list of choices is empty.")
  values = {_stored(value): value for value in data}
  return _Dimension(data, lambda trial: values[trial.suggest_categorical(key, list(values))])


def _stored(value: Any) -> Any:
  """Returns a scalar for a value, because Optuna's categories are scalars."""
  return json.dumps(value) if isinstance(value, (list, dict)) else value
