"""The figures in docs/results belong to the current configs."""

import json
import pathlib
import re

import pytest

from agents import configs
from benchmarks import ablation
from benchmarks.common import scored_runs

_DOCS = pathlib.Path(__file__).parents[2] / "docs"
_ROWS = scored_runs.read(_DOCS / "results" / "learning.csv")
_EARLIER = scored_runs.read(_DOCS / "results" / "earlier.csv")
_PARTS = scored_runs.read(_DOCS / "results" / "ablation.csv")
# Cells of the table in the README: config, number and unit of steps (optional),
# number of seeds, return with the mean action, return with sampled actions.
_README = re.findall(
  r"^\| `(\w+)`[^|]*\| (?:(\d+)([kM]) \| )?(\d+) \| ([^|]+) \| ([^|]+) \|",
  (_DOCS.parent / "README.md").read_text(),
  re.MULTILINE,
)


def test_results_are_complete():
  assert _ROWS and all(None not in row.values() for row in _ROWS)


@pytest.mark.parametrize(
  "row", [*_ROWS, *_EARLIER], ids=lambda row: f"{row['config']}-{row['seed']}"
)
def test_row_belongs_to_the_current_config(row):
  job = scored_runs.Job(row["config"], int(row["steps"]), int(row["seed"]))
  assert not row["variant"] and "dirty" not in row["commit"]
  assert scored_runs.matches(row, scored_runs.identity(job, 100))
  assert json.loads(row["settings"])["env.id"] == row["task"]


@pytest.mark.slow
def test_ablation_belongs_to_the_current_configs_and_variants():
  found = {(row["config"], row["variant"], int(row["seed"])): row for row in _PARTS}
  steps = int(_PARTS[0]["steps"])
  wanted = ablation.make_jobs(
    [scored_runs.Job(name, steps, seed) for name in ("cheetah", "hopper") for seed in range(3)]
  )
  assert len(found) == len(_PARTS) == len(wanted)
  for job in wanted:
    row = found[job.name, job.variant, job.seed]
    assert scored_runs.matches(row, scored_runs.identity(job, 100))
    assert "dirty" not in row["commit"]


def test_pages_show_the_tables_of_all_rows():
  page = (_DOCS / "results.md").read_text()
  assert scored_runs.summary(_ROWS) in page
  assert ablation.table(_PARTS) in page
  experiments = (_DOCS / "experiments" / "results.md").read_text()
  assert scored_runs.summary(_EARLIER) in experiments


@pytest.mark.parametrize(
  "name, steps, unit, seeds, mean_action, sampled", _README, ids=lambda cell: cell
)
def test_readme_shows_the_returns_of_the_rows(name, steps, unit, seeds, mean_action, sampled):
  budget = int(steps) * {"k": 1_000, "M": 1_000_000}[unit] if steps else configs.load(name)[1].steps
  rows = [row for row in _ROWS if row["config"] == name and int(row["steps"]) == budget]
  assert len(rows) == int(seeds)
  for kind, shown in (("mean_action", mean_action), ("sampled", sampled)):
    returns = [float(row[kind]) for row in rows]
    assert scored_runs.spread(returns) == shown.strip()


def test_readme_shows_all_rows_with_the_budgets_of_the_configs():
  rows = [row for row in _ROWS if int(row["steps"]) == configs.load(row["config"])[1].steps]
  assert sum(int(seeds) for _, _, _, seeds, _, _ in _README) == len(rows)
