"""The order of what happens at a start."""

import json

import pytest

from benchmarks import machine
from benchmarks import startup


@pytest.mark.slow
def test_everything_happens_in_its_order():
  output = machine.python("-m", "benchmarks.startup", "--measure", "debug")
  seconds = json.loads(output.splitlines()[-1])
  assert list(seconds) == list(startup.COLUMNS)
  assert 0 < seconds["built"] < seconds["first_step"] < seconds["first_update"]
  # The second one does not compile again.
  assert 0 < seconds["second_update"] < 0.5 * seconds["first_update"]


def test_the_table_has_a_row_of_medians_for_each_config(capsys, monkeypatch):
  measured = iter([1, 9, 2, 4, 6, 5])
  def python(*args):
    assert args[:3] == ("-m", "benchmarks.startup", "--measure")
    return json.dumps(dict.fromkeys(startup.COLUMNS, next(measured)))
  monkeypatch.setattr(machine, "python", python)
  startup.main(["--configs", "debug,pendulum", "--repeats", "3"])
  rows = [[cell.strip() for cell in line.split("|")[1:3]] for line
          in capsys.readouterr().out.splitlines() if "|" in line]
  assert rows[2:] == [["debug", "2.00"], ["pendulum", "5.00"]]
