"""ActionLog collects finished episodes and failures."""

import numpy as np
import pytest

from agents.environments.blocks import base
from agents.environments.data import action_log, episode_data, failure_budget

_RUN_SEED, _FIRST, _SIZE = 5, 10, 3


@pytest.fixture
def log():
  log = action_log.ActionLog(_RUN_SEED, _SIZE, _FIRST, failure_budget.FailureBudget(9))
  log.begin()
  return log


def _seed(row, episode):
  return episode_data.episode_seed(_RUN_SEED, _FIRST + row, episode)


def _update(log, reports=None, **fields):
  """Records a step in which no episode ends, except for the given changes.

  Args:
    log: The log.
    reports: Reports of the step by index of the environment.
    fields: By name of an array, the changed values by row.

  Returns:
    The arrays of the step.
  """
  arrays = {
    "action": np.array([[1], [2], [3]], np.float32),
    "active": np.ones(_SIZE, bool),
    "valid": np.ones(_SIZE, bool),
    "reward": np.array([0.5, 1.5, 2.5], np.float32),
    "terminated": np.zeros(_SIZE, bool),
    "truncated": np.zeros(_SIZE, bool),
    "final_observ": np.array([[10], [20], [30]], np.float32),
  }
  for name, rows in fields.items():
    for row, value in rows.items():
      arrays[name][row] = value
  log.record_step(arrays, reports or {}, not arrays["active"].all())
  return arrays


def test_finished_episodes_and_final_observations_are_in_order(log):
  _update(log)
  _update(
    log,
    {_FIRST + 2: base.StepReport({"step": 2}), _FIRST: base.StepReport({"step": 1})},
    terminated={2: True},
    truncated={0: True},
  )
  finished = log.take_finished()
  assert [(x.seed, x.score, x.length, x.info) for x in finished] == [
    (_seed(0, 0), 1.0, 2, {"step": 1}),
    (_seed(2, 0), 5.0, 2, {"step": 2}),
  ]
  assert [x.tolist() for x in log.take_final_observ()] == [[10], [30]]


def test_each_episode_is_returned_once(log):
  for _ in range(2):
    _update(log, {_FIRST: base.StepReport({})}, terminated={0: True})
    assert len(log.take_finished()) == 1
    assert len(log.take_final_observ()) == 1
    assert not log.take_finished()
    assert not log.take_final_observ()


def test_final_observations_are_copies(log):
  arrays = _update(log, {_FIRST: base.StepReport({})}, terminated={0: True})
  arrays["final_observ"][:] = 0
  assert log.take_final_observ()[0].tolist() == [10]


def test_failed_episode_is_recorded_as_a_failure(log):
  _update(log)
  _update(log, {_FIRST + 1: base.StepReport("broken")}, valid={1: False}, reward={1: 0})
  assert not log.take_finished() and not log.take_final_observ()
  ((text, (failed,)),) = log._failure_budget.drain()
  assert (text, failed.environment, failed.seed) == ("broken", _FIRST + 1, _seed(1, 0))
  assert failed.action.tolist() == [[2], [2]]
  assert log.state.episode.tolist() == [0, 1, 0]


def test_failed_resets_skip_episodes(log):
  _update(log, {_FIRST: base.StepReport({}, ("one", "two"))}, terminated={0: True})
  assert [x.seed for x in log.take_finished()] == [_seed(0, 0)]
  failures = log._failure_budget.drain()
  assert [(text, failed.seed, len(failed.action)) for text, (failed,) in failures] == [
    ("one", _seed(0, 1), 0),
    ("two", _seed(0, 2), 0),
  ]
  assert log.state.episode.tolist() == [3, 0, 0]
  assert log.state.seed[0] == _seed(0, 3)


def test_failures_beyond_the_budget_are_raised():
  log = action_log.ActionLog(_RUN_SEED, _SIZE, _FIRST)
  log.begin()
  with pytest.raises(base.EnvironmentFailure, match="broken"):
    _update(log, {_FIRST: base.StepReport("broken")}, valid={0: False})
  assert log._failure_budget.fatal.text == "broken"


def test_nothing_is_recorded_for_waiting_environments(log):
  _update(
    log,
    {_FIRST: base.StepReport({})},
    terminated={0: True},
    active={1: False},
    valid={1: False},
    reward={1: 0},
  )
  assert len(log.take_finished()) == 1
  assert not log._failure_budget.drain()
  assert log.state.episode.tolist() == [1, 0, 0]
  assert log.state.length.tolist() == [0, 0, 1]
