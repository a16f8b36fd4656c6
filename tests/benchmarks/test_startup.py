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


@pytest.mark.slow
def test_the_table_has_a_row_for_each_config(capsys):
  startup.main(["--configs", "debug,pendulum", "--repeats", "1"])
  lines = capsys.readouterr().out.splitlines()
  assert [line.split("|")[1].strip() for line in lines if "|" in line][2:] == [
      "debug", "pendulum"]
