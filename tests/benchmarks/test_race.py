import csv
import json

import pytest

from benchmarks import race
from benchmarks.common import machine


def curve_of(*returns, seconds=10.0):
  """Return a curve with one point per second."""
  return race.Curve(seconds, [
      {"step": 100 * second, "seconds": float(second), "episodes": 1,
       "return": value} for second, value in enumerate(returns, 1)])


def test_curve_consists_of_training_rows_with_episodes():
  row = {"phase": "train", "step": 100, "seconds": 1.5, "episodes": 2,
         "return_mean": 3.0, "length_mean": 4.0}
  last = {**row, "step": 200, "seconds": 2.5, "episodes": 0,
          "return_mean": None}
  rows = [row, {**row, "phase": "eval"}, last, {**last, "phase": "eval"}]
  curve = race.from_metrics("\n".join(map(json.dumps, rows)))
  assert curve == race.Curve(2.5, [
      {"step": 100, "seconds": 1.5, "episodes": 2, "return": 3.0}])


def test_goals_are_round_and_reached_by_two_curves():
  curves = {"one": curve_of(-400.0, 0.0, 1234.0),
            "two": curve_of(-300.0, 987.0, 500.0)}
  goals = race.goals(curves)
  assert goals == [0, 300, 600, 900]
  slow = {"third": curve_of(-500.0, -400.0), "none": curve_of()}
  assert race.goals({**curves, **slow}) == goals
  for curve in curves.values():
    assert race.seconds_to(curve, goals[-1]) is not None


@pytest.mark.parametrize("other", [
    curve_of(), curve_of(20.0, 20.0), curve_of(5.0, 1.0)])
def test_curves_without_a_common_rise_have_no_goals(other):
  assert race.goals({"one": curve_of(10.0, 20.0), "other": other}) == []


def test_goal_is_reached_at_the_first_point_above_it():
  curve = curve_of(1.0, 5.0, 3.0, 6.0)
  assert race.seconds_to(curve, 5.0) == 2.0
  assert race.seconds_to(curve, 5.5) == 4.0
  assert race.seconds_to(curve, 7.0) is None


def test_table_has_final_returns_and_times():
  text = race.table({
      "ours": curve_of(0.0, 4.0, 8.0),
      "slow": curve_of(0.0, 0.0, 8.0, seconds=20.5), "none": curve_of()})
  header, _, *rows = text.splitlines()
  assert header.split("|")[2:-1] == [
      " final return ", "  total ", "  to 2 ", "  to 4 ", "  to 6 ", "  to 8 "]
  assert rows == [
      "| ours |          8.0 | 10.0 s | 2.0 s | 2.0 s | 3.0 s | 3.0 s |",
      "| slow |          8.0 | 20.5 s | 3.0 s | 3.0 s | 3.0 s | 3.0 s |",
      "| none |            - | 10.0 s |     - |     - |     - |     - |"]


def test_csv_has_one_line_per_point(tmp_path):
  race.write_csv(
      {"a, b": curve_of(1.0, 2.0), "c": curve_of(3.0)}, tmp_path / "x.csv")
  with open(tmp_path / "x.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  assert [(row["system"], row["return"]) for row in rows] == [
      ("a, b", "1.0"), ("a, b", "2.0"), ("c", "3.0")]
  assert rows[1]["step"] == "200" and rows[1]["seconds"] == "2.0"


def test_missing_package_is_reported_before_training(monkeypatch):
  monkeypatch.setattr(machine, "python", None)
  monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
  with pytest.raises(SystemExit, match=r"pip install -e '\.\[benchmarks\]'"):
    race.main(["--config", "cartpole"])


@pytest.mark.slow
def test_all_files_are_written(tmp_path):
  pytest.importorskip("stable_baselines3")
  output = machine.python(
      "-m", "benchmarks.race", "--config", "cartpole", "--steps", "4096",
      "--out", str(tmp_path / "race.png"))
  assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")
  with open(tmp_path / "race.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  assert len({row["system"] for row in rows}) == 3
  assert "final return" in output
