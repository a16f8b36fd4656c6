import re

import pytest

from agents.reports import results
from benchmarks import report
from tests.reports import folders


def test_copies_form_groups_of_ten_runs_with_other_scores(tmp_path):
  run = folders.make(tmp_path / "1-cheetah", [1.0, 2.0], sampled=[None, 2.0])
  for number in range(20):
    report.copy(run, number, tmp_path / f"{number}-copy")
  copies = [results.read(path) for path in sorted(tmp_path.glob("*-copy"))]
  assert [len(group.runs) for group in results.group(copies)] == [10, 10]
  assert len({copy.rows[-1]["return_mean"] for copy in copies}) == 20


@pytest.mark.slow
def test_benchmark_prints_a_duration(tmp_path, capsys):
  run = folders.make(tmp_path / "1-cheetah", [1.0, 2.0])
  report.main([str(run), "--runs", "3"])
  assert re.search(r"3 runs with 2 lines of metrics: [\d.]+ s", capsys.readouterr().out)
