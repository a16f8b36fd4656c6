import numpy as np
import pytest

from benchmarks import early_rank
from tests.reports import folders


def _ranks(values):
  return [sorted(values).index(value) for value in values]


@pytest.mark.parametrize("share", early_rank.SHARES)
def test_correlation_is_that_of_the_ranks(share):
  curves = [*np.random.default_rng(0).normal(size=(7, 20))]
  early = [np.mean(curve[: int(20 * share)][-3:]) for curve in curves]
  final = [np.mean(curve[-3:]) for curve in curves]
  expected = np.corrcoef(_ranks(early), _ranks(final))[0, 1]
  correlation, p_value, is_kept = early_rank.predict(curves, share)
  assert correlation == pytest.approx(expected)
  assert 0 <= p_value <= 1
  assert is_kept == (_ranks(early)[np.argmax(final)] >= 3)


def test_complete_runs_are_added_and_read(tmp_path):
  for seed in range(4):
    scores = [1.0 * seed, 3.0 - seed, 5.0 * seed]
    folders.make(tmp_path / "runs" / f"{seed}-cheetah", scores, {"seed": seed, "steps": 300})
  folders.make(tmp_path / "runs" / "5-cheetah", [9.0], {"seed": 5, "steps": 300})
  path = tmp_path / "evaluations.csv"
  early_rank.add(str(tmp_path / "runs"), path)
  curves = early_rank.read(path)
  assert [list(curve) for curve in curves["cheetah"]] == [
    [1.0 * seed, 3.0 - seed, 5.0 * seed] for seed in range(4)
  ]
  assert early_rank.table(curves).splitlines()[2].startswith("| cheetah |     4 |")


def test_page_shows_the_table_of_the_stored_evaluations():
  page = early_rank.PATH.parents[1] / "experiments" / "results.md"
  assert early_rank.table(early_rank.read(early_rank.PATH)) in page.read_text()
