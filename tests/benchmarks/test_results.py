"""What docs/results says is of the configs as they are."""

import json
import pathlib

import pytest

from benchmarks import runs

_DOCS = pathlib.Path(__file__).parents[2] / "docs"
_ROWS = runs.read(_DOCS / "results" / "learning.csv")


def test_there_are_results():
  assert _ROWS and all(None not in row.values() for row in _ROWS)


@pytest.mark.parametrize(
    "row", _ROWS, ids=lambda row: f"{row['config']}-{row['seed']}")
def test_a_row_is_of_the_config_as_it_is(row):
  job = runs.Job(row["config"], int(row["steps"]), int(row["seed"]))
  assert not row["variant"] and "dirty" not in row["commit"]
  assert runs._same(row, runs._about(job, 100))
  assert json.loads(row["settings"])["env.id"] == row["task"]


def test_the_page_shows_the_table_of_all_rows():
  assert runs.summary(_ROWS) in (_DOCS / "results.md").read_text()
