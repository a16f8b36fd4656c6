"""Reward scaling, compared with the standard deviation that NumPy computes."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents.algorithms import reward_scale
from tests.support import modes


def _batches(num_batches=3):
  """Yields rewards, returns and validity of several batches.

  Invalid rows contain extreme numbers.
  """
  rng = np.random.default_rng(0)
  for size in (20, 7, 31)[:num_batches]:
    reward = rng.normal(3, 5, size).astype(np.float32)
    returns = rng.normal(-2, 9, size).astype(np.float32)
    valid = np.arange(size) < size - 4
    reward[~valid] = returns[~valid] = 1e4
    yield reward, returns, valid


def _update(scale, reward, returns, valid, prepare=lambda function: function):
  """Updates the scale with rewards, then with returns.

  Returns:
    Standard deviation before both updates, between the updates, and after them.
  """
  stds = [scale.std.numpy()]
  prepare(functools.partial(scale.update, "reward"))(tf.constant(reward), tf.constant(valid))
  stds.append(scale.std.numpy())
  prepare(functools.partial(scale.update, "return"))(tf.constant(returns), tf.constant(valid))
  return [*stds, scale.std.numpy()]


@modes.compiled_slowly
def test_kind_reward_divides_by_the_std_of_all_rewards(prepare):
  scale, seen, before = reward_scale.RewardScale("reward", None), [], 1.0
  for reward, returns, valid in _batches():
    seen.extend(reward[valid].astype(np.float64))
    expected = np.std(seen)
    np.testing.assert_allclose(
      _update(scale, reward, returns, valid, prepare), [before, expected, expected], rtol=1e-5
    )
    before = expected


@modes.compiled_slowly
def test_kind_return_divides_by_the_std_of_all_returns(prepare):
  scale, seen, before = reward_scale.RewardScale("return", None), [], 1.0
  for reward, returns, valid in _batches():
    seen.extend(returns[valid].astype(np.float64))
    expected = np.std(seen)
    np.testing.assert_allclose(
      _update(scale, reward, returns, valid, prepare), [before, before, expected], rtol=1e-5
    )
    before = expected


def test_kind_none_keeps_rewards_and_has_no_moments():
  scale = reward_scale.RewardScale("none", None)
  for batch in _batches():
    assert _update(scale, *batch) == [1, 1, 1]
  assert scale.variables == []
  np.testing.assert_array_equal(scale(tf.constant([-7.0, 1e6])), [-7, 1e6])


@modes.compiled_slowly
@pytest.mark.parametrize("kind", ["reward", "return"])
def test_rewards_are_divided_but_not_centered(prepare, kind):
  scale = reward_scale.RewardScale(kind, None)
  for batch in _batches():
    _update(scale, *batch)
  rewards = np.array([[-1e4, -1], [0, 2e4]], np.float32)
  std = scale.std.numpy()
  assert std.dtype == np.float32 and std > 2
  np.testing.assert_allclose(prepare(scale)(tf.constant(rewards)), rewards / std, rtol=1e-5)


@modes.compiled_slowly
@pytest.mark.parametrize("kind", ["reward", "none"])
def test_scaled_rewards_are_clipped(prepare, kind):
  scale = reward_scale.RewardScale(kind, 1.5)
  scale.update("reward", tf.constant([-2.0, 6.0]), tf.fill([2], True))
  std = 4 if kind == "reward" else 1
  rewards = std * tf.constant([-9.0, -1.6, -1.4, 0.0, 1.0, 1.6, 9.0])
  np.testing.assert_allclose(prepare(scale)(rewards), [-1.5, -1.5, -1.4, 0, 1, 1.5, 1.5], rtol=1e-5)


@pytest.mark.parametrize("kind", ["reward", "return"])
def test_variables_contain_the_complete_state(kind):
  scale, copy = (reward_scale.RewardScale(kind, None) for _ in range(2))
  batches = list(_batches())
  _update(scale, *batches[0])
  for source, target in zip(scale.variables, copy.variables, strict=True):
    target.assign(source)
  assert _update(copy, *batches[1]) == _update(scale, *batches[1])
