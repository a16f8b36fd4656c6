"""A policy that differs is noticed."""

import numpy as np
import pytest

from agents.export import verify
from tests.export import untrained_runs


@pytest.fixture(scope="module")
def played(tmp_path_factory):
  policy = untrained_runs.load(tmp_path_factory.mktemp("logdir"), "choice")
  steps: list = []
  returns = verify.play(policy, verify.in_training(policy), steps.append)
  return policy, steps, returns


def test_episodes_are_those_of_evaluations(played):
  _, steps, returns = played
  assert len(returns) == 10 and sum(returns) == len(steps)


def test_the_same_policy_is_the_same(played):
  policy, steps, returns = played
  found = verify.examine(policy, verify.in_training(policy), steps)
  assert found.difference == 0 and found.returns == returns
  assert 0 < found.milliseconds < 1000


def test_another_one_is_not(played):
  policy, steps, returns = played
  run = verify.in_training(policy)
  def contrary(inputs):
    return {"action": 1 - run(inputs)["action"]}
  found = verify.examine(policy, contrary, steps)
  assert found.choices == 1
  assert not verify.same(found.returns, returns) and not found.same(returns)


@pytest.mark.slow
def test_small_differences_count(tmp_path):
  policy = untrained_runs.load(tmp_path, "box")
  run, recorded = verify.in_training(policy), verify.Recorded()
  returns = verify.play(policy, run, recorded.add)
  def shifted(by):
    return lambda inputs: {"action": run(inputs)["action"] + np.float32(by)}
  found = verify.examine(policy, shifted(1e-4), recorded.steps)
  assert found.difference == pytest.approx(5e-5, 0.1)  # Of -2 to 2.
  assert not found.same(returns)
  assert verify.examine(policy, shifted(2e-6), recorded.steps).same(returns)


def test_recorded_steps_are_from_all_of_a_stretch():
  recorded = verify.Recorded()
  for number in range(20_001):
    recorded.add(number)
  assert 2000 <= len(recorded.steps) < 4000
  assert recorded.steps[0] == 0 and recorded.steps[-1] >= 19_990
  assert len(set(np.diff(recorded.steps))) == 1


@pytest.mark.parametrize("others, same", [
    ([100.0] * 10, True), ([100.05] * 10, True), ([90.0] * 10, False),
    ([80.0, 120.0] * 5, True), ([30.0, 50.0] * 5, False)])
def test_returns_differ_by_chance_or_not(others, same):
  assert verify.same([100.0] * 10, others) == same
  assert verify.same(np.array(others), [100.0] * 10) == same
