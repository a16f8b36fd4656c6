"""What docs/results says is of the configs as they are."""

import json
import pathlib

import pytest

from benchmarks import ablation
from benchmarks import runs

_DOCS = pathlib.Path(__file__).parents[2] / "docs"
_ROWS = runs.read(_DOCS / "results" / "learning.csv")
_PARTS = runs.read(_DOCS / "results" / "ablation.csv")


def test_there_are_results():
  assert _ROWS and all(None not in row.values() for row in _ROWS)


@pytest.mark.parametrize(
    "row", _ROWS, ids=lambda row: f"{row['config']}-{row['seed']}")
def test_a_row_is_of_the_config_as_it_is(row):
  job = runs.Job(row["config"], int(row["steps"]), int(row["seed"]))
  assert not row["variant"] and "dirty" not in row["commit"]
  assert runs._same(row, runs._about(job, 100))
  assert json.loads(row["settings"])["env.id"] == row["task"]


def test_the_ablation_is_of_the_configs_and_variants_as_they_are():
  found = {(row["config"], row["variant"], int(row["seed"])): row
           for row in _PARTS}
  steps = int(_PARTS[0]["steps"])
  wanted = ablation.jobs([runs.Job(name, steps, seed)
                          for name in ("cheetah", "hopper")
                          for seed in range(3)])
  assert len(found) == len(_PARTS) == len(wanted)
  for job in wanted:
    row = found[job.name, job.variant, job.seed]
    assert runs._same(row, runs._about(job, 100))
    assert "dirty" not in row["commit"]


def test_the_page_shows_the_tables_of_all_rows():
  page = (_DOCS / "results.md").read_text()
  assert runs.summary(_ROWS) in page
  assert ablation.table(_PARTS) in page
