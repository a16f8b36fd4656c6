import json

import pytest

from benchmarks import threshold
from benchmarks.common import machine
from tests.support import command


def test_median_is_never_if_most_runs_miss_the_goal():
  runs = [{"train": seconds, "eval": None} for seconds in (9.0, 20.2, None)]
  assert threshold.table(runs).splitlines()[2:] == [
    "| training episodes |     20 |       9 |   never |",
    "| evaluation        |  never |   never |   never |",
  ]


def test_task_without_a_threshold_needs_a_goal():
  with pytest.raises(SystemExit, match="Humanoid-v5 has no .*give a --goal"):
    threshold.main(["--config", "humanoid"])


@pytest.mark.slow
def test_training_ends_when_both_phases_reach_the_goal():
  args = *command.SMALL, "--steps", "200000", "--set", "eval_every=2000"
  # Without an early end, training would take minutes.
  run = threshold.seconds_to(-1e4, *args)
  assert 0 < run["train"] < 100 and 0 < run["eval"] < 100


@pytest.mark.slow
def test_training_ends_with_its_budget_if_the_goal_is_missed(capsys):
  changes = [part for text in command.SMALL[2:] if text != "--set" for part in ("--set", text)]
  threshold.main(
    ["--config", "pendulum", "--goal", "1", "--seeds", "3", "--set", "steps=400", *changes]
  )
  output = capsys.readouterr().out
  (seed,) = (line for line in output.splitlines() if line.startswith("seed 3"))
  assert json.loads(seed.partition(": ")[2])["train"] is None
  assert output.count("never") == 6


@pytest.mark.slow
def test_failed_run_reports_its_error():
  with pytest.raises(machine.ProcessFailed, match="no such config"):
    threshold.seconds_to(0.0, "--config", "nothing")
