"""Prints the named configs as a table."""

import itertools
from collections.abc import Sequence

import gymnasium

from agents import config as config_lib
from agents import configs
from agents.reports import published_scores

# Families in the order of the table, by the beginning of the environment's id,
# or by the package in Gymnasium that contains the environment.
_FAMILIES = {
  "": "Any task, with --set env.id=ID",
  "mujoco": "MuJoCo",
  "classic_control": "Classic control",
  "dm_control/": "DeepMind Control",
  "ALE/": "Atari",
}


def table() -> str:
  """Returns a table with two lines per named config, grouped by family."""
  header = "config", "task", "steps", "IQM [95 %]", "worst", "reached", "minutes"
  groups: dict[str, list[tuple[tuple[str, ...], str]]] = {title: [] for title in _FAMILIES.values()}
  for name in configs.names():
    config = configs.load(name)[1]
    text, expected = configs.about(name)
    results = _results(config, expected) if expected else ()
    row = name, config.env.id or "any", f"{config.steps:,}", *results
    groups[_family(config)].append((row, text.removeprefix(f"{config.env.id}: ")))
  rows = [header, *(row for group in groups.values() for row, _ in group)]
  widths = [max(map(len, column)) for column in itertools.zip_longest(*rows, fillvalue="")]

  def line(row: Sequence[str]) -> str:
    return "  ".join(map(str.ljust, row, widths)).rstrip()

  lines = [line(header)]
  for title, group in groups.items():
    lines += [f"\n{title}", *(f"{line(row)}\n    {text}" for row, text in group)] if group else []
  return "\n".join(
    [
      *lines,
      "\nIQM: interquartile mean of the final returns over seeds, with the "
      "mean action. Worst: lowest\nreturn of a seed. Reached: share of the seeds "
      "that reach the best published return.\nMinutes were measured on at most two CPU cores.",
    ]
  )


def _results(config: config_lib.Config, expected: configs.Expected) -> tuple[str, ...]:
  """Returns the cells of a config's results."""
  best = published_scores.best(config.env.id, config.steps)
  low, high = (f"{limit:g}" for limit in expected.interval)
  return (
    f"{expected.iqm:.4g} [{low}, {high}]",
    f"{min(expected.scores):g}",
    best.reached_by(expected.scores) if best else "-",
    f"{expected.minutes:g}",
  )


def _family(config: config_lib.Config) -> str:
  env_id = config.env.id
  for prefix in ("dm_control/", "ALE/"):
    if env_id.startswith(prefix):
      return _FAMILIES[prefix]
  if not env_id:
    return _FAMILIES[""]
  _, _, package, *_ = str(gymnasium.spec(env_id).entry_point).split(".")
  return _FAMILIES[package]
