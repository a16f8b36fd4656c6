import pytest

from benchmarks import scaling, scaling_settings
from benchmarks.common import machine
from benchmarks.speed import Speed

ONE, TWO = scaling_settings.Point(("one",)), scaling_settings.Point(("two",))


def test_points_alternate_and_equal_points_are_measured_once():
  order = []

  def measure(point):
    order.append(point)
    return Speed(len(order), None)

  results = scaling.measure_alternately([ONE, TWO, ONE], measure, repeats=2)
  assert order == [ONE, TWO, ONE, TWO]
  assert results == {ONE: [Speed(1, None), Speed(3, None)], TWO: [Speed(2, None), Speed(4, None)]}


def test_failed_point_is_reported_once_and_left_out(capsys):
  def measure(point):
    if point == ONE:
      raise machine.ProcessFailed("no memory")
    return Speed(1, None)

  results = scaling.measure_alternately([ONE, TWO], measure, repeats=2)
  assert results == {TWO: [Speed(1, None)] * 2}
  assert capsys.readouterr().out.count("no memory") == 1


@pytest.mark.slow
def test_advice_is_written(tmp_path):
  config = tmp_path / "small.py"
  config.write_text("""\
from agents.configs import default
CONFIG = default.CONFIG.override({
    "env.id": "Pendulum-v1", "eager": True, "num_envs": 1,
    "algorithm.segment_length": 16, "algorithm.minibatch_size": 16,
    "algorithm.update_epochs": 1})
""")  # Eager, because compilation would take longer.
  machine.python(
    "-m",
    "benchmarks.scaling",
    "--config",
    str(config),
    "--only",
    "advice",
    "--repeats",
    "1",
    "--seconds",
    "0.1",
    "--out",
    str(tmp_path / "scaling.md"),
  )
  text = (tmp_path / "scaling.md").read_text()
  assert "the config's own" in text and "own settings" in text
