import argparse
import json

import pytest

from benchmarks.common import machine
from benchmarks import scaling_points
from benchmarks import scaling
from benchmarks.speed import Speed

ONE, TWO = scaling_points.Point(("one",)), scaling_points.Point(("two",))


def test_points_take_turns_and_the_same_is_measured_once():
  order = []
  def measure(point):
    order.append(point)
    return Speed(len(order), None)
  results = scaling.take_turns([ONE, TWO, ONE], measure, repeats=2)
  assert order == [ONE, TWO, ONE, TWO]
  assert results == {ONE: [Speed(1, None), Speed(3, None)],
                     TWO: [Speed(2, None), Speed(4, None)]}


def test_what_fails_is_told_and_left_out(capsys):
  def measure(point):
    if point == ONE:
      raise machine.Failed("no memory")
    return Speed(1, None)
  results = scaling.take_turns([ONE, TWO], measure, repeats=2)
  assert results == {TWO: [Speed(1, None)] * 2}
  assert capsys.readouterr().out.count("no memory") == 1


def test_parts_are_named_with_commas():
  assert scaling._parts("envs,memory") == ["envs", "memory"]
  with pytest.raises(argparse.ArgumentTypeError, match="no env; there are"):
    scaling._parts("env")


@pytest.mark.slow
def test_all_files_are_written(tmp_path):
  config = tmp_path / "small.py"
  config.write_text("""\
from agents.configs import default
CONFIG = default.CONFIG.override({
    "env.id": "Pendulum-v1", "eager": True, "num_envs": 8,
    "algorithm.segment_length": 16, "algorithm.update_epochs": 1})
""")  # Eager, as compiling would take longer.
  machine.python(
      "-m", "benchmarks.scaling", "--config", str(config), "--quick",
      "--only", "workers,advice", "--repeats", "1", "--seconds", "0.1",
      "--out", str(tmp_path / "v1.0"))
  assert (tmp_path / "v1.0.png").read_bytes().startswith(b"\x89PNG")
  text = (tmp_path / "v1.0.md").read_text()
  assert "worker processes" in text and "he defaults" in text
  data = json.loads((tmp_path / "v1.0.json").read_text())
  assert data["panels"]["workers"]["points"][0]["x"] == 1
  assert data["advice"]["choices"]
