"""Diagnostics: warnings about training that fails, from its metrics.

The bounds lie beyond the metrics of the named configs while they learn, and a
symptom must persist for several reports, so healthy runs cause no warnings.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agents import config as config_lib

_PAUSE = 25  # Reports before a warning is repeated.


class Symptom(NamedTuple):
  """Condition that causes a warning."""

  name: str
  patience: int  # Consecutive reports with the symptom before a warning.
  present: Callable[[dict[str, float]], bool]  # Function of update metrics.
  text: str  # Warning; a format string for metrics and settings.


class Diagnostics:
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
    self._settings = config_lib.flat(config)
    # Other algorithms may report other metrics, or use other units.
    self._symptoms = (list(_symptoms(config.algorithm, continuous))
                      if config.algorithm.type == "ppo" else [])
    self.state: dict[str, dict[str, int]] = {"lasts": {}, "pause": {}}

  def examine(self, metrics: dict[str, float]) -> list[str]:
    """Update the counters and return due warnings.

    Args:
      metrics: Metrics of the last update, by name.
    Returns:
      One text per warning.
    """
    lasts, pause, warnings = self.state["lasts"], self.state["pause"], []
    for symptom in self._symptoms:
      name = symptom.name
      lasts[name] = lasts.get(name, 0) + 1 if symptom.present(metrics) else 0
      pause[name] = max(0, pause.get(name, 0) - 1)
      if lasts[name] >= symptom.patience and not pause[name]:
        pause[name] = _PAUSE
        warnings.append(symptom.text.format(
            **metrics, settings=self._settings))
    return warnings


def _symptoms(config: config_lib.Algorithm, continuous: bool
              ) -> Iterator[Symptom]:
  """Yield the symptoms that are meaningful with these settings."""
  target, adaptive = config.kl_target, config.lr_schedule == "kl_adaptive"
  # A controller that holds the KL replaces the initial learning rate.
  rate = "algorithm.kl_target" if adaptive else "algorithm.learning_rate"
  yield Symptom(
      "kl_high", 3, lambda x: x["kl"] > 30 * target,
      "Updates are too large: their KL divergence is {kl:.2g}, but "
      "algorithm.kl_target is {settings[algorithm.kl_target]:g}. "
      + ("Lower algorithm.update_epochs." if adaptive else
         "Lower algorithm.learning_rate, or set "
         "algorithm.lr_schedule=kl_adaptive."))
  if adaptive or config.kl_penalty:
    yield Symptom(
        "kl_low", 10, lambda x: x["kl"] < target / 30,
        "Updates are too small: their KL divergence is {kl:.2g}, but "
        "algorithm.kl_target is {settings[algorithm.kl_target]:g}. Raise "
        "algorithm.update_epochs" + (
            "." if adaptive else " or algorithm.learning_rate."))
  yield from _value_symptoms(config, rate)
  yield Symptom(
      "observ_clipped", 3, lambda x: x.get("observ_clipped", 0.0) > 0.05,
      "{observ_clipped:.0%} of the normalized observations are clipped. Raise "
      "algorithm.observ_clip, or remove extreme values from the observations "
      "of the environment.")
  if continuous:
    yield from _action_symptoms(rate)


def _value_symptoms(config: config_lib.Algorithm, rate: str
                    ) -> Iterator[Symptom]:
  """Yield symptoms of a value function that learns nothing or diverges."""
  yield Symptom(
      # A small error means that returns hardly vary, as in a mastered task.
      "value_useless", 10, lambda x: (
          x["explained_variance"] <= 0 and x["value_loss"] > 0.05),
      "The value function explains nothing of the returns: the explained "
      "variance is {explained_variance:.2f}. Unless rewards are noise, raise "
      f"algorithm.update_epochs or network.value_layers, or lower {rate}.")
  if config.reward_scale == "return":
    limit, reason = 10.0, "returns are scaled to a variance of 1"
  elif config.reward_clip and config.discount < 1:
    largest = config.reward_clip / (1 - config.discount)
    limit, reason = largest ** 2, f"no return is larger than {largest:g}"
  else:  # Returns are unbounded, and so are the errors.
    return
  yield Symptom(
      "value_diverges", 3, lambda x: x["value_loss"] > limit,
      "The value function diverges: its squared error is {value_loss:.3g}, "
      f"but {reason}. Lower {rate}, or bound the rewards more tightly by "
      "algorithm.reward_clip.")


def _action_symptoms(rate: str) -> Iterator[Symptom]:
  """Yield symptoms of the distribution of continuous actions."""
  yield Symptom(
      "std_collapsed", 3, lambda x: x["action_std"] < 0.002,
      "The policy no longer explores: the standard deviation of its actions is "
      "{action_std:.2g}; bounded actions span [-1, 1]. Raise "
      f"algorithm.entropy_coef, or lower {rate}.")
  yield Symptom(
      "std_explodes", 3, lambda x: x["action_std"] > 3,
      "The policy is mostly noise: the standard deviation of its actions is "
      "{action_std:.2g}; bounded actions span [-1, 1]. Lower "
      "algorithm.entropy_coef or network.init_std.")
  yield Symptom(
      "actions_saturated", 3, lambda x: x["action_saturation"] > 0.9,
      "{action_saturation:.0%} of the actions lie beyond their bounds. "
      f"Lower network.init_std or {rate}.")
