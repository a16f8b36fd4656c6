"""Advantages, compared with a naive transcription of their definition."""

import numpy as np
import pytest
import tensorflow as tf

from agents.ops import gae
from tests.support import modes


def _naive_advantage(reward, value, next_value, terminated, truncated, discount, lambda_):
  """Sums the TD errors from each step to the end of its episode."""
  steps, batch = reward.shape
  advantage = np.zeros((steps, batch))
  for env in range(batch):
    for start in range(steps):
      weight = 1.0
      for step in range(start, steps):
        future = 0.0 if terminated[step, env] else next_value[step, env]
        delta = reward[step, env] + discount * future - value[step, env]
        advantage[start, env] += weight * delta
        if terminated[step, env] or truncated[step, env]:
          break
        weight *= discount * lambda_
  return advantage


def _random_segment(seed, steps=12, batch=6):
  rng = np.random.default_rng(seed)
  reward, value, next_value = rng.normal(size=(3, steps, batch))
  terminated, truncated = rng.random((2, steps, batch)) < 0.2
  # Environment 0 ends no episode; one step of environment 1 is terminated and
  # truncated.
  terminated[:, 0] = truncated[:, 0] = False
  terminated[4, 1] = truncated[4, 1] = True
  return [
    reward.astype(np.float32),
    value.astype(np.float32),
    next_value.astype(np.float32),
    terminated,
    truncated,
  ]


def _advantage(segment, discount=0.9, lambda_=0.8, function=gae.generalized_advantage):
  tensors = [tf.constant(array) for array in segment]
  return function(*tensors, discount, lambda_).numpy()


def _simple_segment(steps=3):
  """Returns steps t of one environment, with value 10 + t, next value 100 + t.

  All rewards are zero, and no episode ends.
  """
  time = np.arange(steps, dtype=np.float32)[:, None]
  ends = np.zeros((steps, 1), bool)
  return [np.zeros_like(time), 10 + time, 100 + time, ends, ends.copy()]


@modes.eager_and_compiled
@pytest.mark.parametrize("discount, lambda_", [(0.99, 0.95), (1.0, 1.0), (0.9, 0.0), (0.0, 0.5)])
def test_advantage_equals_the_naive_sum_of_td_errors(prepare, discount, lambda_):
  function = prepare(gae.generalized_advantage)
  for seed in range(3):
    segment = _random_segment(seed)
    np.testing.assert_allclose(
      _advantage(segment, discount, lambda_, function),
      _naive_advantage(
        *[array.astype(np.float64) if array.dtype == np.float32 else array for array in segment],
        discount,
        lambda_,
      ),
      rtol=1e-5,
      atol=1e-5,
    )


@modes.eager_and_compiled
def test_environments_can_be_columns_or_consecutive_rows(prepare):
  columns = _random_segment(0)
  columns[4][-1] = True  # A sequence ends at the end of each column.
  function = prepare(gae.generalized_advantage)
  consecutive = _advantage([array.T.reshape(-1) for array in columns], function=function)
  np.testing.assert_allclose(consecutive, _advantage(columns).T.reshape(-1), rtol=1e-5, atol=1e-6)


@modes.eager_and_compiled
def test_double_precision_is_kept(prepare):
  segment = _random_segment(0)
  segment[:3] = [array.astype(np.float64) for array in segment[:3]]
  function = prepare(gae.generalized_advantage)
  np.testing.assert_allclose(
    _advantage(segment, function=function),
    _naive_advantage(*segment, 0.9, 0.8),
    rtol=1e-12,
    atol=1e-12,
  )


def test_last_step_of_a_segment_bootstraps_from_next_value():
  advantage = _advantage(_simple_segment())
  np.testing.assert_allclose(advantage[2], 0.9 * 102 - 12, rtol=1e-6)


def test_termination_leaves_only_the_reward():
  segment = _simple_segment()
  segment[0][1] = 5
  segment[3][1] = True
  np.testing.assert_allclose(_advantage(segment)[1], 5 - 11, rtol=1e-6)


def test_truncation_bootstraps_from_its_own_next_value():
  segment = _simple_segment()
  segment[4][1] = True
  advantage = _advantage(segment)
  np.testing.assert_allclose(advantage[1], 0.9 * 101 - 11, rtol=1e-6)
  segment[2][1] = 201
  np.testing.assert_allclose(_advantage(segment)[1] - advantage[1], 0.9 * 100, rtol=1e-5)
  # The next step belongs to another episode, so its value has no effect.
  segment[1][2] = 1e6
  np.testing.assert_allclose(_advantage(segment)[1] - advantage[1], 0.9 * 100, rtol=1e-5)


def test_termination_overrides_truncation_of_the_same_step():
  segment = _simple_segment()
  segment[3][1] = segment[4][1] = True
  np.testing.assert_allclose(_advantage(segment)[1], -11, rtol=1e-6)


@pytest.mark.parametrize("flag", [3, 4], ids=["terminated", "truncated"])
def test_steps_after_an_end_change_no_earlier_advantage(flag):
  segment = _random_segment(1)
  segment[3][5], segment[4][5] = False, False
  segment[flag][5] = True
  before = _advantage(segment)
  rng = np.random.default_rng(2)
  for array in segment[:3]:
    array[6:] = 100 * rng.normal(size=array[6:].shape)
  segment[3][6:] ^= True
  after = _advantage(segment)
  np.testing.assert_array_equal(after[:6], before[:6])
  assert (after[6:] != before[6:]).all()


def test_next_value_of_a_terminated_step_changes_nothing():
  segment = _random_segment(3)
  before = _advantage(segment)
  segment[2][segment[3]] = 1e6
  np.testing.assert_array_equal(_advantage(segment), before)


def test_advantage_with_lambda_one_is_the_return_minus_the_value():
  reward, value, next_value, *ends = _simple_segment(steps=4)
  reward[:, 0] = [1, 2, 3, 4]
  # Inside an episode, the true successor is the next state.
  next_value[:-1] = value[1:]
  advantage = _advantage([reward, value, next_value, *ends], 0.5, 1.0)
  expected = 1 + 0.5 * 2 + 0.25 * 3 + 0.125 * 4 + 0.0625 * next_value[3]
  np.testing.assert_allclose(advantage[0] + value[0], expected, rtol=1e-6)


def test_no_gradient_flows_into_the_values():
  segment = [tf.constant(array) for array in _random_segment(0)]
  with tf.GradientTape() as tape:
    tape.watch(segment[:3])
    advantage = gae.generalized_advantage(*segment, 0.9, 0.8)
  assert not any(gradient is not None for gradient in tape.gradient(advantage, segment[:3]))


@pytest.mark.parametrize(
  "discount, lambda_, name",
  [(1.2, 0.9, "discount"), (-0.1, 0.9, "discount"), (0.9, 1.1, "lambda_")],
)
def test_discount_or_lambda_outside_of_its_range_is_an_error(discount, lambda_, name):
  with pytest.raises(ValueError, match=f"`{name}` must lie in"):
    _advantage(_simple_segment(), discount, lambda_)
