"""Tables and advice from the measurements of `benchmarks.scaling`."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from benchmarks import scaling_points
from benchmarks import speed
from benchmarks.common import tables

# All rounds of every point that could be measured.
Results = dict[scaling_points.Point, list[speed.Speed]]
LABELS = {
    "envs": "environments", "workers": "worker processes",
    "width": "units of every hidden layer", "minibatch": "minibatch size"}
_OWN = scaling_points.Point()
_NOISY = 0.2  # Relative spread of equal measurements above which to warn.


class Advice(NamedTuple):
  """Fastest settings of those measured."""

  best: scaling_points.Point
  share: float  # Speed of the config's own settings divided by the best.
  certain: bool  # Whether the best settings were faster in every round.


def advise(choices: Sequence[scaling_points.Point], results: Results
           ) -> Advice | None:
  """Return the choice with the highest median speed.

  Args:
    choices: Points to choose from, `Point()` among them.
    results: All measurements.
  Returns:
    The advice; None if the config itself could not be measured.
  """
  rates = {choice: speeds(results[choice]) for choice in choices
           if choice in results}
  if _OWN not in rates:
    return None
  medians = {choice: statistics.median(values)
             for choice, values in rates.items()}
  best = max(medians, key=lambda choice: medians[choice])
  faster = [one > other for one, other in zip(
      rates[best], rates[_OWN], strict=True)]
  return Advice(best, medians[_OWN] / medians[best], all(faster))


def describe(advice: Advice, config: str) -> str:
  """Return the advice as text, with the command that follows it.

  Args:
    advice: Fastest settings.
    config: Name of the config.
  """
  if advice.share == 1:
    return "The config's own settings are the fastest."
  share = f"The config's own settings reach {advice.share:.0%} of the fastest"
  if not advice.certain:
    share += (", which were not ahead in every round. Keep your settings, or "
              "try")
  return f"{share}:\n\n    {command(advice.best, config)}"


def command(point: scaling_points.Point, config: str) -> str:
  """Return the command line that trains with the settings of a point."""
  variables = [f"{key}={value}" for key, value in point.variables.items()]
  return " ".join([*variables, shlex.join(
      ["python", "train.py", "--config", config, *point.args])])


def memory_per_env(pairs: Mapping[str, Sequence[scaling_points.Point]],
                   results: Results) -> dict[str, float]:
  """Return the bytes that each additional environment needs.

  Args:
    pairs: Points with FEW_ENVS and with MANY_ENVS environments, by name.
    results: All measurements.
  Returns:
    Bytes by name, for all pairs whose memory could be measured.
  """
  slopes = {}
  for name, pair in pairs.items():
    few, many = [[each.memory for each in results.get(point, [])
                  if each.memory is not None] for point in pair]
    if few and many:
      slopes[name] = (statistics.median(many) - statistics.median(few)) / (
          scaling_points.MANY_ENVS - scaling_points.FEW_ENVS)
  return slopes


def memory_text(memory: Mapping[str, float]) -> str:
  """Return a sentence about the memory of an additional environment.

  Args:
    memory: Bytes of "training", "simulator", or both.
  """
  texts = [f"{label} {memory[name] / 2**20:.2f} MiB" for name, label in (
      ("training", "training"), ("simulator", "the simulator alone"))
           if name in memory]
  text = f"Memory of an additional environment: {', '.join(texts)}"
  if len(texts) == 2:
    added = round((memory["training"] - memory["simulator"]) / 1024)
    difference = f"{added:,} KiB" if added > 0 else "not measurable"
    text += f"; difference {difference}"
  return f"{text}."


def report(config: str, cores: int,
           sweeps: Mapping[str, Mapping[int, scaling_points.Point]],
           choices: Sequence[scaling_points.Point],
           memory: Mapping[str, float], results: Results) -> str:
  """Return all results as Markdown.

  Args:
    config: Name of the config.
    cores: Number of cores of the machine.
    sweeps: Measured points of each panel, by their values on its x axis.
    choices: Points to choose the fastest from.
    memory: Bytes of an additional environment, see `memory_per_env`.
    results: All measurements.
  """
  parts = [f"# Speed of `{config}` on {cores} cores",
           "Training steps per second, learning included: median, minimum and "
           "maximum of the rounds. A star marks the config's own value."]
  if (spread := _spread(results)) > _NOISY:
    parts.append(f"The machine was noisy: equal settings differed by "
                 f"{spread:.0%} (median). Repeat this on an idle machine.")
  for name, points in sweeps.items():
    rows = [[f"{x} *" if point == _OWN else str(x), *_figures(results[point])]
            for x, point in points.items() if point in results]
    parts.append(tables.markdown(
        [LABELS[name], "steps/s", "minimum", "maximum"], rows))
  if memory:
    parts.append(memory_text(memory))
  if advice := advise(choices, results):
    parts.append(tables.markdown(
        ["settings", "threads", "steps/s", "minimum", "maximum"],
        [[" ".join(choice.settings) or "the config's own",
          str(choice.threads or "all"), *_figures(results[choice])]
         for choice in choices if choice in results]))
    parts.append(describe(advice, config))
  return "\n\n".join(parts) + "\n"


def rows(results: Results) -> list[dict[str, Any]]:
  """Return all measurements as values for JSON."""
  return [{**point._asdict(), "steps_per_second": speeds(measured),
           "memory": [each.memory for each in measured]}
          for point, measured in results.items()]


def speeds(measured: Sequence[speed.Speed]) -> list[float]:
  """Return the steps per second of each round."""
  return [each.steps_per_second for each in measured]


def _spread(results: Results) -> float:
  """Return the median of (fastest round ÷ slowest round - 1)."""
  rates = map(speeds, results.values())
  return statistics.median(
      [max(values) / min(values) - 1 for values in rates] or [0.0])


def _figures(measured: Sequence[speed.Speed]) -> list[str]:
  values = speeds(measured)
  return [f"{value:,.0f}" for value in (
      statistics.median(values), min(values), max(values))]
