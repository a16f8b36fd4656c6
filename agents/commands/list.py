"""Print the named configs with their tasks, budgets, scores and minutes.

example:
  %(prog)s
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from agents import config as config_lib
from agents import configs
from agents.commands import parsing
from agents.reports import published_scores

# Families in the order of the table, by the beginning of the environment's id.
_FAMILIES = {
  "": "Any task, with --set env.id=ID",
  "mujoco": "MuJoCo",
  "classic_control": "Classic control",
  "robots/": "Legged robots",
  "envpool": "EnvPool",
  "dm_control/": "DeepMind Control",
  "ALE/": "Atari",
}
# Gymnasium's environments without physics engine. Other ids without a slash
# belong to MuJoCo.
_CLASSIC_CONTROL = "Acrobot-", "CartPole-", "MountainCar", "Pendulum-"


class Results(NamedTuple):
  """Measured results of a named config."""

  scores: tuple[float, ...]  # Mean return of each seed's final policy.
  iqm: float  # Interquartile mean of the scores.
  interval: tuple[float, float]  # 95 % bootstrap interval of the IQM.
  minutes: float  # Duration of a run on at most two CPU cores.
  published: published_scores.PublishedScore | None  # Best one, for this budget.


class NamedConfig(NamedTuple):
  """A named config, as the table shows it."""

  name: str
  family: str
  task: str  # Id of the environment, or "" if the user names it.
  steps: int  # Budget in environment steps.
  description: str
  results: Results | None


def main(argv: list[str] | None = None) -> int:
  """Runs the command `list`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("list", __doc__)
  parsing.add_json(parser, "names, tasks, budgets and results")
  with parsing.parsed(parser, argv) as args:
    rows = find()
    args.result = {"configs": rows}
    if not args.json:
      print(table(rows))
  return 0


def find() -> list[NamedConfig]:
  """Returns all named configs, sorted by family and name."""
  rows = []
  for name in configs.names():
    config = configs.load(name)[1]
    env_id = config.env.id
    text, expected = configs.about(name)
    results = expected and Results(
      expected.scores,
      expected.iqm,
      expected.interval,
      expected.minutes,
      published_scores.best(env_id, config.steps),
    )
    description = text.removeprefix(f"{env_id}: ")
    rows.append(NamedConfig(name, _family(config.env), env_id, config.steps, description, results))
  families = list(_FAMILIES.values())
  return sorted(rows, key=lambda row: families.index(row.family))


def table(rows: Sequence[NamedConfig]) -> str:
  """Returns a table with two lines per named config, grouped by family.

  Args:
    rows: Named configs, sorted by family.
  """
  header = "config", "task", "steps", "IQM [95 %]", "worst", "reached", "minutes"
  cells = [header, *map(_cells, rows)]
  widths = [max(map(len, column)) for column in itertools.zip_longest(*cells, fillvalue="")]

  def line(row: Sequence[str]) -> str:
    return "  ".join(map(str.ljust, row, widths)).rstrip()

  lines = [line(header)]
  for family, group in itertools.groupby(rows, key=lambda row: row.family):
    lines.append(f"\n{family}")
    lines += [f"{line(_cells(row))}\n    {row.description}" for row in group]
  return "\n".join(
    [
      *lines,
      "\nIQM: interquartile mean of the final returns over seeds, with the "
      "mean action. Worst: lowest\nreturn of a seed. Reached: share of the seeds "
      "that reach the best published return.\nMinutes were measured on at most two CPU cores.",
    ]
  )


def _cells(row: NamedConfig) -> tuple[str, ...]:
  cells = row.name, row.task or "any", f"{row.steps:,}"
  if not (results := row.results):
    return cells
  low, high = (f"{limit:g}" for limit in results.interval)
  # `.4g` alone would show large values as powers of ten.
  iqm = f"{results.iqm:.0f}" if abs(results.iqm) >= 1000 else f"{results.iqm:.4g}"
  return (
    *cells,
    f"{iqm} [{low}, {high}]",
    f"{min(results.scores):g}",
    results.published.reached_by(results.scores) if results.published else "-",
    f"{results.minutes:g}",
  )


def _family(env: config_lib.Env) -> str:
  """Returns the family of an environment, without importing Gymnasium."""
  if env.backend == "envpool":
    return _FAMILIES["envpool"]
  package, slash, _ = env.id.partition("/")
  if slash or not env.id:
    return _FAMILIES[package + slash]
  return _FAMILIES["classic_control" if env.id.startswith(_CLASSIC_CONTROL) else "mujoco"]
