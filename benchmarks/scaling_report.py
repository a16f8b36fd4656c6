"""Tables and advice from the measurements of `benchmarks.scaling`."""

import shlex
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks import scaling_settings, speed
from benchmarks.common import tables

# Measurements in all rounds; points that failed are missing.
Results = dict[scaling_settings.Point, list[speed.Speed]]
_COLUMNS = "steps/s", "minimum", "maximum", "memory"
_OWN = scaling_settings.Point()  # The unchanged config.
_NOISY = 0.2  # Relative spread of equal measurements that causes a warning.


class Advice(NamedTuple):
  """Fastest settings that were measured."""

  best: scaling_settings.Point
  share: float  # Speed of the config's own settings, divided by that of `best`.
  certain: bool  # Whether the best settings were faster in every round.


def advise(choices: Sequence[scaling_settings.Point], results: Results) -> Advice | None:
  """Returns the choice with the highest median speed.

  Args:
    choices: Points to choose from, including `Point()`.
    results: All measurements.

  Returns:
    The advice; None if the config itself could not be measured.
  """
  rates = {choice: speeds(results[choice]) for choice in choices if choice in results}
  if _OWN not in rates:
    return None
  medians = {choice: statistics.median(values) for choice, values in rates.items()}
  best = max(medians, key=lambda choice: medians[choice])
  faster = [one > other for one, other in zip(rates[best], rates[_OWN], strict=True)]
  return Advice(best, medians[_OWN] / medians[best], all(faster))


def describe(advice: Advice, config: str) -> str:
  """Returns the advice as text, with the command that trains accordingly.

  Args:
    advice: Fastest settings.
    config: Name of the config.
  """
  if advice.share == 1:
    return "The config's own settings are the fastest."
  text = f"The config's own settings reach {advice.share:.0%} of the fastest speed"
  if not advice.certain:
    text += ", but were not slower in every round. Keep your settings, or try"
  return f"{text}:\n\n    {command(advice.best, config)}"


def command(point: scaling_settings.Point, config: str) -> str:
  """Returns the command line that trains with the settings of a point."""
  variables = [f"{key}={value}" for key, value in point.variables.items()]
  return " ".join([*variables, shlex.join(["python", "train.py", "--config", config, *point.args])])


def report(
  config: str,
  cores: int,
  environments: Mapping[int, scaling_settings.Point],
  choices: Sequence[scaling_settings.Point],
  results: Results,
) -> str:
  """Returns all results as Markdown.

  Args:
    config: Name of the config.
    cores: Number of cores of the machine.
    environments: Points by number of environments.
    choices: Points from which to recommend the fastest.
    results: All measurements.
  """
  parts = [
    f"# Speed of `{config}` on {cores} cores",
    "Steps per second of training, including learning: median, minimum "
    "and maximum over the rounds. Memory is the median of all processes "
    "together, in MiB. A star marks the config's own value.",
  ]
  if (spread := _spread(results)) > _NOISY:
    parts.append(
      "The machine was noisy: speeds of equal settings differed by "
      f"{spread:.0%} (median). Repeat the benchmark on an idle machine."
    )
  if environments:
    parts.append(
      tables.markdown(
        ["environments", *_COLUMNS],
        [
          [f"{num_envs} *" if point == _OWN else str(num_envs), *_figures(results[point])]
          for num_envs, point in environments.items()
          if point in results
        ],
      )
    )
  if advice := advise(choices, results):
    parts.append(
      tables.markdown(
        ["settings", "threads", *_COLUMNS],
        [
          [
            " ".join(choice.settings) or "the config's own",
            str(choice.threads or "all"),
            *_figures(results[choice]),
          ]
          for choice in choices
          if choice in results
        ],
      )
    )
    parts.append(describe(advice, config))
  return "\n\n".join(parts) + "\n"


def speeds(measured: Sequence[speed.Speed]) -> list[float]:
  """Returns the steps per second of each round."""
  return [each.steps_per_second for each in measured]


def _spread(results: Results) -> float:
  """Returns the median of (fastest round ÷ slowest round - 1)."""
  rates = map(speeds, results.values())
  return statistics.median([max(values) / min(values) - 1 for values in rates] or [0.0])


def _figures(measured: Sequence[speed.Speed]) -> list[str]:
  values = speeds(measured)
  memory = [each.memory for each in measured if each.memory is not None]
  return [
    *(f"{value:,.0f}" for value in (statistics.median(values), min(values), max(values))),
    f"{statistics.median(memory) / 2**20:,.0f}" if memory else "-",
  ]
