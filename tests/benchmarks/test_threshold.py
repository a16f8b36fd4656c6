"""Runs are timed until they are good enough."""

import json

import pytest

from benchmarks.common import machine
from benchmarks import threshold
from tests import command


def test_half_of_the_runs_got_there_by_the_median():
  found = [{"train": seconds, "eval": None} for seconds in (9.0, 20.2, None)]
  assert threshold.table(found).splitlines()[2:] == [
      "| training episodes |     20 |       9 |   never |",
      "| evaluation        |  never |   never |   never |"]


def test_tasks_without_a_threshold_need_a_goal():
  with pytest.raises(SystemExit, match="Humanoid-v5 has no .*give a --goal"):
    threshold.main(["--config", "humanoid"])


@pytest.mark.slow
def test_training_ends_when_both_have_reached_it():
  args = *command.SMALL, "--steps", "200000", "--set", "eval_every=2000"
  found = threshold.seconds_to(-1e4, *args)  # It would take minutes to its end.
  assert 0 < found["train"] < 100 and 0 < found["eval"] < 100
  assert found["step_limit"] > 0


@pytest.mark.slow
def test_training_ends_without_having_reached_it(capsys):
  changes = [part for text in command.SMALL[2:] if text != "--set"
             for part in ("--set", text)]
  threshold.main(["--config", "pendulum", "--goal", "1", "--seeds", "3",
                  "--set", "steps=400", *changes])
  output = capsys.readouterr().out
  seed, = (line for line in output.splitlines() if line.startswith("seed 3"))
  assert json.loads(seed.partition(": ")[2])["train"] is None
  assert output.count("never") == 6


@pytest.mark.slow
def test_runs_that_fail_say_why():
  with pytest.raises(machine.Failed, match="no such config"):
    threshold.seconds_to(0.0, "--config", "nothing")
