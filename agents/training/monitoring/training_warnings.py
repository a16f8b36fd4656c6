"""TrainingWarnings: warnings about failing training, derived from metrics.

Healthy runs cause no warnings, because the bounds are wider than the metrics of
the named configs during learning, and a symptom must persist for several
reports.
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
  present: Callable[[dict[str, float]], bool]  # Function of update metrics.
  meaningful: bool = True  # Whether it applies to the settings of the run.


class TrainingWarnings:
  """Checks the metrics of each report for symptoms.

  Attributes:
    state: JSON-serializable counters by name of the symptom: "lasts" holds the
      consecutive reports with the symptom, "pause" the reports before the
      warning may be repeated.

  Args:
    config: Configuration of the run.
    continuous: Whether the action space contains continuous actions.
  """

  def __init__(self, config: config_lib.Config, continuous: bool):
    self.state: dict[str, dict[str, int]] = {"lasts": {}, "pause": {}}
    self._texts = yaml.safe_load(_TEXTS.read_text())
    # With "kl_adaptive", `kl_target` determines the learning rate.
    adaptive = config.algorithm.lr_schedule == "kl_adaptive"
    limit, reason = _value_limit(config.algorithm)
    self._words = {
        "settings": config_lib.flat(config), "reason": reason,
        "rate": f"algorithm.{'kl_target' if adaptive else 'learning_rate'}",
        "smaller": "algorithm.update_epochs" if adaptive else (
            "algorithm.learning_rate, or set "
            "algorithm.lr_schedule=kl_adaptive"),
        "larger": "" if adaptive else " or algorithm.learning_rate"}
    # Other algorithms may report other metrics, or use other units.
    self._symptoms = [
        symptom for symptom in _symptoms(config.algorithm, continuous, limit)
        if symptom.meaningful and config.algorithm.type == "ppo"]

  def examine(self, metrics: dict[str, float]) -> list[str]:
    """Updates the counters and returns due warnings.

    Args:
      metrics: Metrics of the last update, by name.

    Returns:
      One text per warning.
    """
    lasts, pause, warnings = self.state["lasts"], self.state["pause"], []
    for name, patience, present, _ in self._symptoms:
      lasts[name] = lasts.get(name, 0) + 1 if present(metrics) else 0
      pause[name] = max(0, pause.get(name, 0) - 1)
      if lasts[name] >= patience and not pause[name]:
        pause[name] = _PAUSE
        warnings.append(self._texts[name].format(**metrics, **self._words))
    return warnings


def _symptoms(config: config_lib.Algorithm, continuous: bool,
              value_limit: float) -> list[Symptom]:
  target = config.kl_target
  return [
      Symptom("kl_high", 3, lambda x: x["kl"] > 30 * target),
      Symptom("kl_low", 10, lambda x: x["kl"] < target / 30, bool(
          config.lr_schedule == "kl_adaptive" or config.kl_penalty)),
      # A small error means that returns hardly vary, as in a mastered task.
      Symptom("value_useless", 10, lambda x: (
          x["explained_variance"] <= 0 and x["value_loss"] > 0.05)),
      Symptom("value_diverges", 3, lambda x: x["value_loss"] > value_limit,
              math.isfinite(value_limit)),
      Symptom("observ_clipped", 3,
              lambda x: x.get("observ_clipped", 0.0) > 0.05),
      Symptom("std_collapsed", 3, lambda x: x["action_std"] < 0.002,
              continuous),
      Symptom("std_explodes", 3, lambda x: x["action_std"] > 3, continuous),
      Symptom("actions_saturated", 3, lambda x: x["action_saturation"] > 0.9,
              continuous)]


def _value_limit(config: config_lib.Algorithm) -> tuple[float, str]:
  """Returns the largest plausible error of the value function, and why."""
  if config.reward_scale == "return":
    return 10.0, "returns are scaled to a variance of 1"
  if config.reward_clip and config.discount < 1:
    largest = config.reward_clip / (1 - config.discount)
    return largest ** 2, f"no return is larger than {largest:g}"
  return math.inf, "returns are unbounded"
