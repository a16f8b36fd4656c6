import pytest

from benchmarks.common import plots


def test_race_with_an_empty_curve_can_be_plotted(tmp_path):
  point = {"seconds": 1.0, "return": 2.0}
  plots.plot_race({"one": [point], "other": []}, "title", "caption",
                  tmp_path / "race.png")
  assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("labels", [["x"], ["x", "y", "z"]])
def test_any_number_of_panels_can_be_plotted(labels, tmp_path):
  panel = {2: [1000.0, 1100.0], 4: [2000.0, 2100.0]}
  plots.plot_scaling(dict.fromkeys(labels, panel), "title",
                     tmp_path / "scaling.png")
  assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
