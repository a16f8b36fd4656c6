"""Verification accepts equal policies and rejects different ones."""

import numpy as np
import pytest

from agents.export import evaluate, verify
from tests.export import untrained_runs


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
  """Returns a policy, its function in training, and its calls and returns."""
  policy = untrained_runs.load(tmp_path_factory.mktemp("logdir"), "choice")
  function = evaluate.training_function(policy)
  calls: list = []
  returns = evaluate.evaluate(policy, function, calls.append)
  return policy, function, calls, returns


def test_every_step_of_ten_episodes_is_recorded(recorded):
  _, _, calls, returns = recorded
  assert len(returns) == 10 and sum(returns) == len(calls)


def test_equal_policy_passes(recorded):
  policy, function, calls, returns = recorded
  comparison = verify.compare(policy, function, calls)
  assert comparison.difference == 0 and comparison.returns == returns
  assert comparison.passed(returns)
  assert 0 < comparison.milliseconds < 1000


def test_policy_with_other_choices_fails(recorded):
  policy, function, calls, returns = recorded

  def opposite(inputs):
    return {"action": 1 - function(inputs)["action"]}

  comparison = verify.compare(policy, opposite, calls)
  assert comparison.other_choices == 1
  assert not verify.same_returns(comparison.returns, returns)
  assert not comparison.passed(returns)


@pytest.mark.slow
def test_only_differences_within_the_tolerance_pass(tmp_path):
  policy = untrained_runs.load(tmp_path, "box")
  function, recorder = evaluate.training_function(policy), verify.CallRecorder()
  returns = evaluate.evaluate(policy, function, recorder.add)

  def shifted(offset):
    return lambda inputs: {"action": function(inputs)["action"] + np.float32(offset)}

  comparison = verify.compare(policy, shifted(1e-4), recorder.calls)
  # The unit is 2, half the range of actions.
  assert comparison.difference == pytest.approx(5e-5, 0.1)
  assert not comparison.passed(returns)
  assert verify.compare(policy, shifted(2e-6), recorder.calls).passed(returns)


def test_recorded_calls_are_evenly_spaced():
  recorder = verify.CallRecorder()
  for index in range(20_001):
    recorder.add(index)
  assert 2000 <= len(recorder.calls) < 4000
  assert recorder.calls[0] == 0 and recorder.calls[-1] >= 19_990
  assert len(set(np.diff(recorder.calls))) == 1


@pytest.mark.parametrize(
  "others, same",
  [
    ([100.0] * 10, True),
    ([100.05] * 10, True),
    ([90.0] * 10, False),
    ([80.0, 120.0] * 5, True),
    ([30.0, 50.0] * 5, False),
  ],
)
def test_returns_are_same_within_three_standard_errors(others, same):
  assert verify.same_returns([100.0] * 10, others) == same
  assert verify.same_returns(np.array(others), [100.0] * 10) == same
