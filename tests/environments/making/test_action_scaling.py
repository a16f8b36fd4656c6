"""The converter maps the agent's actions into the action space."""

import functools

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.making import action_scaling
from tests.environments import faulty_envs, rollouts

_INF = np.inf
_WIDEST = np.finfo(np.float32).max
_BOXES = [
  gymnasium.spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype)
  for low, high, dtype in (
    ([-1, -2, 0, 3], [1, 2, 1, 7], np.float32),
    ([-1, -2, 0, 3], [1, 2, 1, 7], np.float64),
    ([-0.1, 1e-3], [0.3, 1.1e-3], np.float32),
    ([0, -_INF, -_INF], [_INF, 0.5, _INF], np.float32),
    ([0, -_INF, -_INF, 2], [_INF, 0.5, _INF, 4], np.float64),
    ([-_WIDEST, 0], [_WIDEST, _WIDEST], np.float32),
    ([5], [5], np.float32),
    ([[-1, 0, -_INF], [2, 4, -3]], [[1, 8, _INF], [3, 4, _INF]], np.float32),
  )
]


def _naive(space, action):
  """Converts each number separately, in double precision."""
  result = np.zeros(action.shape)
  for index in np.ndindex(action.shape):
    low = float(space.low[index[1:]])
    high = float(space.high[index[1:]])
    value = float(action[index])
    if np.isfinite(low) and np.isfinite(high):
      fraction = (min(max(value, -1), 1) + 1) / 2
      result[index] = low * (1 - fraction) + high * fraction
    else:
      result[index] = min(max(value, low), high)
  return result


@pytest.mark.parametrize("space", _BOXES, ids=str)
def test_actions_span_the_bounds_and_stay_within(space):
  convert = action_scaling.action_converter(space)
  random = np.random.default_rng(0)
  for scale in (0.3, 1, 3, 1e6, 1e37):
    action = random.normal(0, scale, (50, *space.shape)).astype(np.float32)
    before = action.copy()
    with np.errstate(all="raise"):
      converted = convert(action)
    assert (action == before).all()
    assert all(space.contains(row) for row in converted)
    np.testing.assert_allclose(converted, _naive(space, action), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("space", _BOXES, ids=str)
def test_actions_of_plus_and_minus_one_reach_the_bounds(space):
  convert = action_scaling.action_converter(space)
  ones = np.ones((1, *space.shape), np.float32)
  low, high = convert(-ones)[0], convert(ones)[0]
  bounded = np.isfinite(space.low) & np.isfinite(space.high)
  np.testing.assert_allclose(low[bounded], space.low[bounded], rtol=1e-6)
  np.testing.assert_allclose(high[bounded], space.high[bounded], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_errors_do_not_exceed_the_bounds(dtype):
  random = np.random.default_rng(0)
  low = random.normal(0, 10, 1000).astype(dtype)
  space = gymnasium.spaces.Box(low, low + random.exponential(3, 1000).astype(dtype), dtype=dtype)
  converted = action_scaling.action_converter(space)(
    np.array([[-1] * 1000, [1] * 1000], np.float32)
  )
  assert all(space.contains(row) for row in converted)


def test_unbounded_actions_do_not_change():
  space = gymnasium.spaces.Box(-_INF, _INF, (2,), np.float32)
  action = np.array([[-1e30, 3], [0.1, 7]], np.float32)
  converted = action_scaling.action_converter(space)(action)
  assert converted.tobytes() == action.tobytes()


def test_one_bound_clips_without_scaling():
  space = gymnasium.spaces.Box(
    np.array([0.0, -_INF], np.float32), np.array([_INF, 0.5], np.float32)
  )
  action = np.array([[-3, -3], [0.25, 0.25], [3, 3]], np.float32)
  assert action_scaling.action_converter(space)(action).tolist() == [
    [0, -3],
    [0.25, 0.25],
    [3, 0.5],
  ]


def test_discrete_actions_are_shifted_by_the_start_of_the_space():
  space = gymnasium.spaces.Discrete(3, start=-1)
  converted = action_scaling.action_converter(space)(np.arange(3))
  assert converted == [-1, 0, 1]
  assert all(type(action) is int for action in converted)


@pytest.mark.parametrize("space", [*_BOXES, gymnasium.spaces.Discrete(3, start=5)], ids=str)
def test_environments_receive_actions_of_their_space(mode, space):
  # The environment raises an error for actions outside of the space.
  with batch_env.BatchEnv([functools.partial(faulty_envs.ChecksActions, space)] * 3, mode) as batch:
    batch.reset()
    for action in rollouts.draw_actions(space, 3, 20):
      batch.step(action)
      for received in batch.get("received"):
        assert space.contains(received)
