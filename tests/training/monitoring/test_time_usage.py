import pytest

from agents.training.monitoring import time_usage


class Clock:
  def __init__(self, monkeypatch):
    self.now = 100.0
    monkeypatch.setattr(time_usage.time, "monotonic", lambda: self.now)


@pytest.fixture
def usage(monkeypatch):
  clock = Clock(monkeypatch)
  usage = time_usage.TimeUsage()
  clock.now += 10.0  # All rows describe these ten seconds.
  return usage


UPDATE = {"stepping": 2.0, "crossing": 0.5, "inference": 0.5, "learning": 1.0}


def test_shares_sum_to_one(usage):
  usage.add(600, UPDATE, 1.5)
  usage.seconds["evaluation"] += 3.0
  row = usage.row()
  shares = {
    name: value for name, value in row.items() if name.endswith("_share") and name != "limit_share"
  }
  assert shares == pytest.approx(
    {
      "stepping_share": 0.2,
      "crossing_share": 0.05,
      "inference_share": 0.05,
      "exchange_share": 0.0,
      "learning_share": 0.1,
      "evaluation_share": 0.3,
      "compiling_share": 0.0,
      "rest_share": 0.3,
    }
  )
  assert sum(shares.values()) == pytest.approx(1)


def test_speed_excludes_compilation_and_evaluation(usage):
  usage.seconds["compiling"] += 1.0
  usage.seconds["evaluation"] += 3.0
  usage.add(600, UPDATE, 1.5)
  usage.add(600, {"stepping": 0.5}, 0.5)
  row = usage.row()
  assert row["steps_per_second"] == pytest.approx(1200 / 6)
  assert row["step_limit"] == pytest.approx(1200 / 2)
  assert row["limit_share"] == pytest.approx(1 / 3)


def test_speed_without_epochs_is_none(usage):
  usage.seconds["compiling"] += 4.0
  row = usage.row()
  assert row["compiling_share"] == pytest.approx(0.4)
  assert row["steps_per_second"] is row["step_limit"] is None
  assert row["limit_share"] is None
  assert time_usage.describe_speed(row) == ""
  assert time_usage.describe_shares(row) == "compiling 40%, rest 60%"


def test_unknown_part_raises_an_error(usage):
  with pytest.raises(KeyError):
    usage.add(600, {"steping": 1.0}, 1.0)


def test_description_of_shares_and_speed(usage):
  usage.add(60_000, UPDATE, 1.5)
  usage.seconds["evaluation"] += 5.999
  row = usage.row()
  assert time_usage.describe_shares(row) == (
    "stepping 20%, crossing 5%, inference 5%, learning 10%, evaluation 60%"
  )
  assert time_usage.describe_speed(row) == ("14,996 steps/s; workers that only step reach 40,000")


def test_backend_without_stepping_times_has_no_limit(usage):
  usage.add(600, UPDATE, 0.0)
  row = usage.row()
  assert row["steps_per_second"] and row["step_limit"] is None
  assert "limit" not in time_usage.describe_speed(row)
