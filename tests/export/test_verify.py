"""A policy that differs is noticed."""

import numpy as np
import pytest

from agents.export import verify
from tests.export import runs


@pytest.fixture(scope="module")
def played(tmp_path_factory):
  policy = runs.load(tmp_path_factory.mktemp("logdir"), "choice")
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
  assert found.difference == 1
  assert not verify.same(found.returns, returns)


def test_small_differences_count(played):
  policy, steps, _ = played
  run = verify.in_training(policy)
  def shifted(inputs):
    return {"action": run(inputs)["action"] + 1e-4}
  found = verify.examine(policy, shifted, steps)
  assert found.difference == pytest.approx(1e-4)
  assert found.difference > verify.TOLERANCE


@pytest.mark.parametrize("others, same", [
    ([100.0] * 10, True), ([100.05] * 10, True), ([90.0] * 10, False),
    ([80.0, 120.0] * 5, True), ([30.0, 50.0] * 5, False)])
def test_returns_differ_by_chance_or_not(others, same):
  assert verify.same([100.0] * 10, others) == same
  assert verify.same(np.array(others), [100.0] * 10) == same
