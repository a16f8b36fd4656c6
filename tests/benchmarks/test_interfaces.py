"""Calls of other libraries have the same results as those of this project."""

import csv
import pathlib

import pytest

from benchmarks import interfaces

_DOCS = pathlib.Path(__file__).parents[2] / "docs"
with open(_DOCS / "results" / "interfaces.csv", newline="") as _file:
  _ROWS = list(csv.DictReader(_file))


def _rows(library):
  return [row for row in _ROWS if row["library"] == library]


def test_page_shows_the_stored_rows():
  page = (_DOCS / "interfaces.md").read_text()
  for library in ("gymnasium", "tf_agents", "torchrl"):
    assert interfaces.table(_rows(library)) in page
  assert {row["equal"] for row in _ROWS} == {"yes"}


@pytest.mark.parametrize("library", ["tf_agents", "torchrl"])
def test_stored_rows_compare_the_current_calls(library):
  pairs = (
    interfaces.tf_agents_pairs() if library == "tf_agents" else interfaces.torchrl_pairs([1, 2])
  )
  assert [(row["call"], row["ours"]) for row in _rows(library)] == [
    (call, ours) for call, (ours, _) in pairs.items()
  ]


def test_calls_of_gymnasium_have_equal_results():
  rows = interfaces.run("gymnasium", None)
  assert (
    [row["equal"] for row in rows]
    == ["yes"] * len(rows)
    == [row["equal"] for row in _rows("gymnasium")]
  )


def test_other_results_are_reported():
  pairs = {"a": ("x", [1.0, 2.0]), "b": ("y", [1.0]), "c": ("z", True)}
  results = {"a": [1.0, 2.1], "b": [[1.0]], "c": True}
  rows = interfaces.compare("library", "1", results, pairs)
  assert [row["equal"] for row in rows] == ["no", "no", "yes"]
