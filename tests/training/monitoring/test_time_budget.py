from __future__ import annotations

import pytest

from agents.training.monitoring import time_budget


class Clock:

  def __init__(self, monkeypatch):
    self.now = 100.0
    monkeypatch.setattr(time_budget.time, "monotonic", lambda: self.now)


@pytest.fixture
def ledger(monkeypatch):
  clock = Clock(monkeypatch)
  made = time_budget.TimeBudget()
  clock.now += 10.0  # All that is asked of it is about ten seconds.
  return made


UPDATE = {"stepping": 2.0, "crossing": 0.5, "inference": 0.5, "learning": 1.0}


def test_shares_account_for_all_of_the_time(ledger):
  ledger.train(600, UPDATE, 1.5)
  ledger.spend("evaluation", 3.0)
  row = ledger.row()
  shares = {name: value for name, value in row.items()
            if name.endswith("_share") and name != "limit_share"}
  assert shares == pytest.approx({
      "stepping_share": 0.2, "crossing_share": 0.05, "inference_share": 0.05,
      "exchange_share": 0.0, "learning_share": 0.1,
      "evaluation_share": 0.3, "compiling_share": 0.0,
      "rest_share": 0.3})
  assert sum(shares.values()) == pytest.approx(1)


def test_speed_is_of_training_with_its_bookkeeping(ledger):
  ledger.spend("compiling", 1.0)
  ledger.spend("evaluation", 3.0)
  ledger.train(600, UPDATE, 1.5)
  ledger.train(600, {"stepping": 0.5}, 0.5)
  row = ledger.row()
  assert row["steps_per_second"] == pytest.approx(1200 / 6)
  assert row["step_limit"] == pytest.approx(1200 / 2)
  assert row["limit_share"] == pytest.approx(1 / 3)


def test_nothing_is_said_of_speed_where_nothing_was_timed(ledger):
  ledger.spend("compiling", 4.0)
  row = ledger.row()
  assert row["compiling_share"] == pytest.approx(0.4)
  assert row["steps_per_second"] is row["step_limit"] is None
  assert row["limit_share"] is None
  assert time_budget.text(row) == "compiling 40%, rest 60%"


def test_parts_unknown_are_refused(ledger):
  with pytest.raises(KeyError):
    ledger.spend("steping", 1.0)


def test_sentence(ledger):
  ledger.train(60_000, UPDATE, 1.5)
  ledger.spend("evaluation", 5.999)
  assert time_budget.text(ledger.row()) == (
      "stepping 20%, crossing 5%, inference 5%, learning 10%, evaluation 60%; "
      "at 0.37 of the 40,000 steps/s that its workers step at most")


def test_a_backend_need_not_say_how_long_it_stepped(ledger):
  ledger.train(600, UPDATE, 0.0)
  row = ledger.row()
  assert row["steps_per_second"] and row["step_limit"] is None
  assert "at most" not in time_budget.text(row)
