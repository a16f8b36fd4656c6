"""Warnings about failing training, derived from metrics.

Healthy runs should cause no warnings. The bounds are therefore wider than the
metrics of all named configs during learning, and a symptom must persist for
several reports.
"""

import math
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import yaml

from agents import config as config_lib

_PAUSE = 25  # Reports before a warning is repeated.
_TEXTS = pathlib.Path(__file__).with_name("warnings.yaml")


class Symptom(NamedTuple):
  """Condition that causes a warning."""

  name: str  # Key of the warning in `warnings.yaml`.
  patience: int  # Consecutive reports with the symptom before a warning.
  # Returns whether the metrics of an update show the symptom.
  is_present: Callable[[dict[str, float]], bool]
  # Whether the symptom indicates a problem with the settings of the run.
  is_meaningful: bool = True


class TrainingWarnings:
  """Checks the metrics of each report for symptoms.

  Attributes:
    state: JSON-serializable counters. For each symptom, by name,
      `state["lasts"]` contains the number of consecutive reports with the
      symptom, and `state["pause"]` contains the number of reports until the
      warning may be repeated.

  Args:
    config: Configuration of the run.
    continuous: Whether the action space contains continuous actions.
  """

  def __init__(self, config: config_lib.Config, continuous: bool) -> None:
    self.state: dict[str, dict[str, int]] = {"lasts": {}, "pause": {}}
    self._texts = yaml.safe_load(_TEXTS.read_text())
    # With these schedules, `kl_target` determines the learning rate.
    adaptive = config.algorithm.lr_schedule in ("kl_adaptive", "kl_adaptive_linear")
    value_limit, reason = _value_limit(config.algorithm)
    self._placeholders = {
      "settings": config_lib.flat(config),
      "reason": reason,
      "rate": f"algorithm.{'kl_target' if adaptive else 'learning_rate'}",
      "smaller": "algorithm.update_epochs"
      if adaptive
      else ("algorithm.learning_rate, or set algorithm.lr_schedule=kl_adaptive"),
      "larger": "" if adaptive else " or algorithm.learning_rate",
    }
    # Other algorithms may report other metrics, or use other units.
    self._symptoms = [
      symptom
      for symptom in _symptoms(config.algorithm, continuous, value_limit)
      if symptom.is_meaningful and config.algorithm.type == "ppo"
    ]

  def examine(self, metrics: dict[str, float]) -> list[str]:
    """Updates the counters, and returns the warnings that are due.

    Args:
      metrics: Metrics of the last update, by name.

    Returns:
      One text per warning.
    """
    lasts, pause, warnings = self.state["lasts"], self.state["pause"], []
    for name, patience, is_present, _ in self._symptoms:
      lasts[name] = lasts.get(name, 0) + 1 if is_present(metrics) else 0
      pause[name] = max(0, pause.get(name, 0) - 1)
      if lasts[name] >= patience and not pause[name]:
        pause[name] = _PAUSE
        warnings.append(self._texts[name].format(**metrics, **self._placeholders))
    return warnings


def _symptoms(config: config_lib.Algorithm, continuous: bool, value_limit: float) -> list[Symptom]:
  target = config.kl_target
  return [
    Symptom("kl_high", 3, lambda x: x["kl"] > 30 * target),
    Symptom(
      "kl_low",
      10,
      lambda x: x["kl"] < target / 30,
      bool(config.lr_schedule == "kl_adaptive" or config.kl_penalty),
    ),
    # A small error means that returns hardly vary, as in a mastered task.
    Symptom("value_useless", 10, lambda x: x["explained_variance"] <= 0 and x["value_loss"] > 0.05),
    Symptom(
      "value_diverges", 3, lambda x: x["value_loss"] > value_limit, math.isfinite(value_limit)
    ),
    Symptom("observ_clipped", 3, lambda x: x.get("observ_clipped", 0.0) > 0.05),
    Symptom("std_collapsed", 3, lambda x: x["action_std"] < 0.002, continuous),
    Symptom("std_explodes", 3, lambda x: x["action_std"] > 3, continuous),
    Symptom("actions_saturated", 3, lambda x: x["action_saturation"] > 0.9, continuous),
  ]


def _value_limit(config: config_lib.Algorithm) -> tuple[float, str]:
  """Returns the largest plausible value loss, and the reason for this limit."""
  if config.reward_scale == "return":
    return 10.0, "returns are scaled to a variance of 1"
  if config.reward_clip and config.discount < 1:
    largest = config.reward_clip / (1 - config.discount)
    return largest**2, f"no return is larger than {largest:g}"
  return math.inf, "returns are unbounded"
