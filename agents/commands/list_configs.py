"""Prints the named configs as a table."""

from collections.abc import Sequence

import gymnasium

from agents import config as config_lib
from agents import configs

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
  header = "config", "task", "steps", "score", "minutes"
  groups: dict[str, list[tuple[tuple[str, ...], str]]] = {title: [] for title in _FAMILIES.values()}
  for name in configs.names():
    config = configs.load(name)[1]
    text, expected = configs.about(name)
    score, minutes = "", ""
    if expected:
      score, minutes = f"{expected.score:g}", f"{expected.minutes:g}"
      if expected.std is not None:
        score += f" ± {expected.std:g}"
    row = name, config.env.id or "any", f"{config.steps:,}", score, minutes
    groups[_family(config)].append((row, text.removeprefix(f"{config.env.id}: ")))
  rows = [header, *(row for group in groups.values() for row, _ in group)]
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

  def line(row: Sequence[str]) -> str:
    return "  ".join(map(str.ljust, row, widths)).rstrip()

  lines = [line(header)]
  for title, group in groups.items():
    lines += [f"\n{title}", *(f"{line(row)}\n    {text}" for row, text in group)] if group else []
  return "\n".join(
    [
      *lines,
      "\nScores are final returns with the mean action. Minutes were "
      "measured on at most two CPU cores.",
    ]
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
