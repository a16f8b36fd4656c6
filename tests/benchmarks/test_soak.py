import numpy as np
import pytest

from benchmarks import soak


def _evaluations(*returns):
  return [
    {"phase": "eval", "step": step, "return_mean": value} for step, value in enumerate(returns)
  ]


def test_reports_may_differ_in_times():
  row = {"step": 3, "return_mean": 1.0, "seconds": 2.0, "restarts": 1, "stepping_share": 0.5}
  reference = {**row, "seconds": 3.0, "restarts": 0, "stepping_share": 0.1}
  assert not soak.differing_reports([row], [reference])
  assert soak.differing_reports([{**row, "return_mean": 2.0}], [reference]) == [
    "The reports at these steps differ: [3]"
  ]


def test_repeated_report_is_a_problem():
  rows = _evaluations(1.0, 2.0)
  assert not soak.repeated_reports(rows)
  (problem,) = soak.repeated_reports([*rows, rows[-1]])
  assert "eval rows are reported twice: [0, 1, 1]" in problem


def test_checkpoints_are_compared_to_the_last_bit(tmp_path, monkeypatch):
  arrays = {"run": {"x": np.float32([1.0, 0.0])}, "reference": {"x": np.float32([1.0, -0.0])}}
  monkeypatch.setattr(soak.checkpoint, "load", lambda path: (arrays[path.name], None))
  run, reference = tmp_path / "run", tmp_path / "reference"
  assert not soak.differing_arrays(5, run, run)
  assert soak.differing_arrays(5, run, reference) == ["These arrays differ at step 5: ['x']"]


def test_score_is_the_mean_of_the_last_evaluations():
  rows = _evaluations(0.0, 1.0, 2.0, 3.0, 4.0)
  rows.append({"phase": "train", "return_mean": 100.0})
  rows.append({"phase": "eval", "return_mean": None})
  assert soak.score(rows) == 3.0
  assert np.isnan(soak.score([]))


@pytest.mark.parametrize("last, low", [(100.0, False), (40.0, True)])
def test_half_of_the_gain_of_the_reference_is_required(last, low):
  reference = _evaluations(0.0, 90.0, 90.0, 90.0)
  assert bool(soak.low_score(_evaluations(0.0, last, last, last), reference)) == low


def test_unknown_faults_are_refused(capsys):
  with pytest.raises(SystemExit):
    soak.main(["--only", "kill,flood"])
  assert "unknown faults: flood" in capsys.readouterr().err
