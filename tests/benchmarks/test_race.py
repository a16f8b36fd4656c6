import pytest

from benchmarks import race
from benchmarks.common import machine


def curve_of(*returns, seconds=10.0):
  """Returns a curve with one point per second."""
  return race.Curve(
    seconds,
    [
      {"step": 100 * second, "seconds": float(second), "episodes": 1, "return": value}
      for second, value in enumerate(returns, 1)
    ],
  )


def test_table_has_final_returns_and_durations():
  text = race.table(
    {"own": curve_of(0.0, 8.0), "slow": curve_of(0.0, 8.5, seconds=20.5), "none": curve_of()}
  )
  assert text.splitlines()[2:] == [
    "| own  |          8.0 |    10.0 |",
    "| slow |          8.5 |    20.5 |",
    "| none |            - |    10.0 |",
  ]


def test_race_with_an_empty_curve_can_be_plotted(tmp_path):
  race.plot({"one": curve_of(1.0, 2.0), "other": curve_of()}, "title", tmp_path / "race.png")
  assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")


def test_missing_package_is_reported_before_training(monkeypatch):
  monkeypatch.setattr(machine, "python", None)
  monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
  with pytest.raises(SystemExit, match=r"pip install -e '\.\[benchmarks\]'"):
    race.main(["--config", "cartpole"])


@pytest.mark.slow
def test_curve_of_training_reaches_the_last_step(tmp_path):
  curve = race.train("--config", "cartpole", "--steps", "4096")
  assert curve.points and 0 < curve.points[0]["seconds"] <= curve.seconds
  assert 0 < curve.points[-1]["return"] <= 500


@pytest.mark.slow
def test_all_systems_are_plotted(tmp_path):
  pytest.importorskip("stable_baselines3")
  output = machine.python(
    "-m",
    "benchmarks.race",
    "--config",
    "cartpole",
    "--steps",
    "4096",
    "--out",
    str(tmp_path / "race.png"),
  )
  assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")
  assert output.count("Stable-Baselines3") == 2
  assert "final return" in output
