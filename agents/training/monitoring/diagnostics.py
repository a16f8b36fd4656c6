"""Is a run sick? Plain words, from figures that are computed anyway.

Bounds lie beyond what the named configs show while they learn, and what is
seen must last, so that there is no warning without a cause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agents import config as config_lib

_PAUSE = 25  # Reports before the same is told again.


class Symptom(NamedTuple):
  """Something to be warned of."""

  name: str
  patience: int  # Reports in a row.
  seen: Callable[[dict[str, float]], bool]  # In the metrics of an update.
  text: str  # To be formatted with metrics and settings.


class Diagnostics:
  """Looks at each report, and says what seems wrong and what to change.

  Args:
    config: Of the run.
    continuous: Whether actions are numbers, not choices.
  """

  def __init__(self, config: config_lib.Config, continuous: bool):
    self._settings = config_lib.flat(config)
    # All about what PPO reports. Others may not, or in other units.
    self._symptoms = (_symptoms(config.algorithm, continuous)
                      if config.algorithm.type == "ppo" else [])
    # For checkpoints; by symptoms' names: reports in a row that have it, and
    # reports to come before it may be told again.
    self.state: dict[str, dict[str, int]] = {"lasts": {}, "pause": {}}

  def examine(self, metrics: dict[str, float]) -> list[str]:
    """Return warnings, if it is time for any.

    Args:
      metrics: What the last update returned.
    """
    lasts, pause, warnings = self.state["lasts"], self.state["pause"], []
    for symptom in self._symptoms:
      name = symptom.name
      lasts[name] = lasts.get(name, 0) + 1 if symptom.seen(metrics) else 0
      pause[name] = max(0, pause.get(name, 0) - 1)
      if lasts[name] >= symptom.patience and not pause[name]:
        pause[name] = _PAUSE
        warnings.append(symptom.text.format(
            **metrics, settings=self._settings))
    return warnings


def _symptoms(config: config_lib.Algorithm, continuous: bool) -> list[Symptom]:
  """Return all there can be with these settings."""
  target = config.kl_target
  held = config.lr_schedule == "kl_adaptive"
  # What sets the pace; holding the KL soon forgets the first step size.
  pace = "algorithm.kl_target" if held else "algorithm.learning_rate"
  found = [
      Symptom(
          "kl_high", 3, lambda x: x["kl"] > 30 * target,
          "Each update moves the policy far: a KL divergence of {kl:.2g}, "
          "where algorithm.kl_target is {settings[algorithm.kl_target]:g}. "
          + ("Lower algorithm.update_epochs." if held else
             "Lower algorithm.learning_rate, or set "
             "algorithm.lr_schedule=kl_adaptive.")),
      Symptom(
          # Where returns are all alike, as in a task that is mastered, there is
          # nothing to explain, and errors are small.
          "value_useless", 10, lambda x: (
              x["explained_variance"] <= 0 and x["value_loss"] > 0.05),
          "The value explains nothing of the returns: explained variance "
          "{explained_variance:.2f}. If rewards are not noise, raise "
          "algorithm.update_epochs or network.value_layers, or lower "
          f"{pace}."),
      Symptom(
          "observ_clipped", 3, lambda x: x.get("observ_clipped", 0.0) > 0.05,
          "{observ_clipped:.0%} of the normalized observations are clipped. "
          "Raise algorithm.observ_clip, or give the environment observations "
          "without extremes.")]
  if config.reward_scale == "return":
    limit, known = 10.0, "returns are scaled to a variance of 1"
  elif config.reward_clip and config.discount < 1:
    largest = config.reward_clip / (1 - config.discount)
    limit, known = largest ** 2, f"no return is larger than {largest:g}"
  else:  # Returns may be of any size, and so may errors.
    limit, known = None, ""
  if limit:
    found.append(Symptom(
        "value_diverges", 3, lambda x: x["value_loss"] > limit,
        f"The value diverges: its squared error is {{value_loss:.3g}}, where "
        f"{known}. Lower {pace}, or bound the rewards more closely by "
        "algorithm.reward_clip."))
  if held or config.kl_penalty:
    found.append(Symptom(
        "kl_low", 10, lambda x: x["kl"] < target / 30,
        "Updates hardly move the policy: a KL divergence of {kl:.2g}, where "
        "algorithm.kl_target is {settings[algorithm.kl_target]:g}. Raise "
        "algorithm.update_epochs" + (
            "." if held else " or algorithm.learning_rate.")))
  if continuous:
    found += [
        Symptom(
            "std_collapsed", 3, lambda x: x["action_std"] < 0.002,
            "The policy no longer explores: its actions' standard deviation is "
            "{action_std:.2g}; bounded actions span [-1, 1]. Raise "
            f"algorithm.entropy_coef, or lower {pace}."),
        Symptom(
            "std_explodes", 3, lambda x: x["action_std"] > 3,
            "The policy is mostly noise: its actions' standard deviation is "
            "{action_std:.2g}; bounded actions span [-1, 1]. Lower "
            "algorithm.entropy_coef or network.init_std."),
        Symptom(
            "actions_saturated", 3, lambda x: x["action_saturation"] > 0.9,
            "{action_saturation:.0%} of the actions lie beyond their bounds. "
            f"Lower network.init_std or {pace}.")]
  return found
