import itertools

import pytest

from agents.training import schedule as schedule_lib


@pytest.mark.parametrize(
  "last, step, is_due",
  [
    (0, 0, False),
    (0, 29, False),
    (0, 30, True),
    (20, 40, True),
    (40, 59, False),
    (40, 60, True),
    (90, 110, True),
    (110, 110, False),
  ],
)
def test_action_is_due_after_each_multiple_and_at_the_end(last, step, is_due):
  schedule = schedule_lib.Schedule(110, {"report": 30}, {"report": last})
  assert schedule.is_due("report", step) == is_due


def test_action_can_be_due_at_the_start_or_never():
  schedule = schedule_lib.Schedule(110, {"save": 30, "video": None}, {"save": -1, "video": 0})
  assert schedule.is_due("save", 0)
  assert not schedule.is_due("video", 110)


@pytest.mark.parametrize(
  "budget, interval, epoch", itertools.product((90, 110), (7, 30, 45, 200), (1, 10, 20))
)
def test_number_of_remaining_actions_is_the_number_that_takes_place(budget, interval, epoch):
  schedule = schedule_lib.Schedule(budget, {"eval": interval}, {"eval": 0})
  remaining, taken = [], []
  for step in range(0, budget + epoch, epoch):
    remaining.append(schedule.num_remaining("eval", step, epoch))
    taken.append(schedule.is_due("eval", step))
    if taken[-1]:
      schedule.last["eval"] = step
  assert remaining == [sum(taken[index:]) for index in range(len(taken))]
