"""The onset of learning ranks settings."""

import itertools

import numpy as np
import pytest
import scipy.stats

from benchmarks import onset

_GOAL = 500.0


def _row(onset_step, latest=100.0):
  return {"onset": onset_step, "latest": latest, "steps": 1000, "goal": _GOAL}


def test_runs_without_onset_rank_last_and_by_their_latest_means():
  rows = [_row(1000, 501.0), _row("", 499.0), _row("", 20.0), _row("", -2000.0)]
  latenesses = [onset.lateness(row) for row in rows]
  assert latenesses == sorted(latenesses) and len(set(latenesses)) == len(rows)


def test_p_value_is_the_share_of_exchanges_with_an_equal_or_larger_difference():
  rng = np.random.default_rng(0)
  first, second = rng.normal(size=6), rng.normal(0.8, size=6)
  ranks = scipy.stats.rankdata([*first, *second])
  differences = ranks[:6] - ranks[6:]
  means = [np.mean(differences * signs) for signs in itertools.product((-1, 1), repeat=6)]
  expected = np.mean(np.abs(means) >= abs(differences.mean()) - 1e-9)
  assert onset.p_value(first, second) == pytest.approx(expected)
  assert onset.p_value(first, first) == 1


def test_table_compares_each_setting_with_the_first():
  rows = {"": [_row(800), _row("")], "a=1": [_row(400), _row(600)]}
  lines = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in onset.table(rows).splitlines()[2:]
  ]
  assert lines == [
    ["(config)", "2", "1", "none", "100", "2.5", ""],
    ["a=1", "2", "2", "600", "100", "1.5", "0.500"],
  ]


def test_mistakes_are_reported_before_the_first_run():
  with pytest.raises(ValueError, match="gae_lamda"):
    onset.main(["--config", "hopper", "--variant", "algorithm.gae_lamda=0.9"])
  with pytest.raises(SystemExit, match="CartPole-v1 has no goal"):
    onset.main(["--config", "cartpole"])
  with pytest.raises(SystemExit, match="at least two"):
    onset.main(["--config", "hopper", "--seeds", "0"])


@pytest.mark.slow
def test_repeated_command_measures_only_new_runs(tmp_path, capsys):
  path = tmp_path / "onset.csv"
  arguments = ["--config", "cartpole", "--goal", "60", "--steps", "3e4", "--out", str(path)]
  onset.main([*arguments, "--seeds", "0-1"])
  first = path.read_text()
  variants = ["--variant", "algorithm.learning_rate=1e-9"]
  onset.main([*arguments, "--seeds", "0-1", *variants])
  second = path.read_text()
  assert second.startswith(first) and len(second.splitlines()) == 5
  lines = capsys.readouterr().out.splitlines()[-2:]
  assert [[cell.strip() for cell in line.split("|")][3] for line in lines] == ["2", "0"]
