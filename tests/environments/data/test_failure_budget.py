"""The budget counts failures within a time window."""

import numpy as np
import pytest

from agents.environments.data import failure_budget


def _failure(number=0):
  return failure_budget.Failure(
    f"failure {number}", (failure_budget.FailedEpisode(3, 7, np.zeros((2, 1))),)
  )


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_limit_is_the_number_of_tolerated_failures(limit):
  budget = failure_budget.FailureBudget(limit)
  failures = [_failure(number) for number in range(limit + 1)]
  assert [budget.record(failure) for failure in failures] == ([True] * limit + [False])
  assert budget.fatal is failures[-1]
  assert budget.drain() == failures[:-1]


def test_drain_returns_each_failure_once():
  budget = failure_budget.FailureBudget(9)
  assert budget.drain() == [] and budget.fatal is None
  first, second = _failure(1), _failure(2)
  budget.record(first)
  assert budget.drain() == [first]
  budget.record(second)
  assert budget.drain() == [second]
  assert budget.drain() == []


def test_failures_before_the_window_do_not_count(monkeypatch):
  now = 1000.0
  monkeypatch.setattr(failure_budget.time, "monotonic", lambda: now)
  budget = failure_budget.FailureBudget(2)
  assert budget.record(_failure()) and budget.record(_failure())
  now += failure_budget.WINDOW
  assert not budget.record(_failure())
  now += 1
  assert budget.record(_failure())


def test_merged_failures_are_drained_but_not_counted():
  budget = failure_budget.FailureBudget(1)
  budget.merge([_failure(1), _failure(2)])
  assert budget.record(_failure(3))
  assert [failure.text for failure in budget.drain()] == ["failure 1", "failure 2", "failure 3"]


@pytest.mark.parametrize(
  "text, summary",
  [
    ("Worker 1 was killed.", "Worker 1 was killed."),
    ("Worker 1 was killed. It was here:\nFile a.py", "Worker 1 was killed."),
    (
      "Environment 2 failed in step():\n\nTraceback (most recent call last):\n"
      "  File a.py\nValueError: broken\n",
      "Environment 2 failed in step(): ValueError: broken",
    ),
  ],
)
def test_summary_is_the_first_line_with_the_error_of_a_traceback(text, summary):
  assert failure_budget.Failure(text).summary == summary
