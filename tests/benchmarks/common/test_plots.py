import pytest

from benchmarks.common import plots


def test_a_race_without_any_points_of_one_can_be_drawn(tmp_path):
  point = {"seconds": 1.0, "return": 2.0}
  plots.race({"one": [point], "other": []}, "title", "caption",
                tmp_path / "race.png")
  assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("names", [
    ["envs"], ["envs", "width", "minibatch"],
    ["envs", "workers", "width", "minibatch"]])
def test_any_number_of_panels_can_be_drawn(names, tmp_path):
  points = [{"x": 2, "steps_per_second": [1000.0, 1100.0]},
            {"x": 4, "steps_per_second": [2000.0, 2100.0]}]
  data = {"config": "cheetah", "cores": 2, "repeats": 2,
          "memory": {"training": 1e6}, "panels": {
              name: {"own": [], "points": points} for name in names}}
  data["panels"]["envs"]["own"] = [4]
  plots.scaling(data, tmp_path / "scaling.png")
  assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
