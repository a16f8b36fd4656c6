import pytest

from benchmarks import scaling_report
from benchmarks import scaling_points
from benchmarks.speed import Speed

DEFAULT = scaling_points.Point()
FEW, MANY = scaling_points.Point(("few",)), scaling_points.Point(("many",))


def test_a_panel_leaves_out_what_could_not_be_measured():
  found = scaling_report.panel({1: FEW, 2: MANY}, {FEW: [Speed(10, 1), Speed(20, 1)]})
  assert found == [
      {"x": 1, "settings": ["few"], "steps_per_second": [10, 20]}]


def test_added_memory_is_the_slope_between_medians():
  added = scaling_points.MANY_ENVS - scaling_points.FEW_ENVS
  results = {
      FEW: [Speed(1, 100), Speed(1, 900), Speed(1, 100)],
      MANY: [Speed(1, 100 + 7 * added)] * 2 + [Speed(1, 0)]}
  assert scaling_report.added_memory({"training": (FEW, MANY)}, results) == {
      "training": 7.0}


@pytest.mark.parametrize("results", [
    {FEW: [Speed(1, 100)]}, {FEW: [Speed(1, None)], MANY: [Speed(1, None)]}])
def test_added_memory_that_was_not_measured_is_left_out(results):
  assert scaling_report.added_memory({"training": (FEW, MANY)}, results) == {}


def test_memory_in_words():
  memory = {"training": 1.5 * 2**20, "simulator": 2**20}
  assert scaling_report.memory_text(memory) == (
      "An added environment needs 1.50 MiB of memory, the simulator alone "
      "1.00 MiB, 512 KiB beyond the simulator's own.")
  del memory["training"]
  assert scaling_report.memory_text(memory) == "The simulator alone 1.00 MiB."


def test_less_memory_than_the_simulator_is_noise():
  assert "nothing measurable beyond" in scaling_report.memory_text(
      {"training": 1000.0, "simulator": 2000.0})


@pytest.mark.parametrize("speeds, noisy", [
    ([100.0, 110.0], False), ([100.0, 150.0], True)])
def test_noise_is_told(speeds, noisy):
  text = scaling_report.report({
      "config": "cheetah", "cores": 2, "repeats": 2, "memory": {},
      "advice": None, "panels": {"envs": {"own": [], "points": [
          {"x": 1, "settings": [], "steps_per_second": speeds}]}}})
  assert ("was noisy" in text) == noisy
  assert ("differed by 50%" in text) == noisy


def test_a_recommendation_needs_the_defaults():
  assert scaling_report.recommendation([FEW], [], {FEW: [Speed(1, 1)]}) is None
  found = scaling_report.recommendation(
      [DEFAULT, FEW], [MANY],
      {DEFAULT: [Speed(9, 1)], FEW: [Speed(10, 1)], MANY: [Speed(99, 1)]})
  assert found["best"]["settings"] == ["few"]
  assert found["defaults_reach"] == 0.9
  assert [row["settings"] for row in found["other_environments"]] == [["many"]]


def test_the_report_marks_the_own_value_and_gives_the_command():
  results = {DEFAULT: [Speed(900, 1), Speed(1100, 1)],
             FEW: [Speed(2000, 1), Speed(2000, 1)]}
  text = scaling_report.report({
      "config": "cheetah", "cores": 2, "repeats": 2,
      "panels": {"workers": {"own": [2], "points": scaling_report.panel(
          {1: FEW, 2: DEFAULT}, results)}},
      "memory": {}, "advice": scaling_report.recommendation(
          [DEFAULT, FEW], [], results)})
  assert "# Speed of `cheetah` on 2 cores" in text
  assert "| 1                |   2,000 | 2,000 | 2,000 |" in text
  assert "| 2 *              |   1,000 |   900 | 1,100 |" in text
  assert "The defaults reach 50% of the fastest" in text
  assert "    python train.py --config cheetah --set few" in text
