"""Actions fit their space, and whatever goes wrong names its environment."""

import functools

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments import block
from agents.environments import episodes
from agents.environments import members
from agents.environments import workers as workers_lib
from tests import toy
from tests.environments import odd
from tests.environments import rollouts

_INF = np.inf
_WIDEST = np.finfo(np.float32).max
_BOXES = [gymnasium.spaces.Box(
    np.array(low, dtype), np.array(high, dtype), dtype=dtype)
          for low, high, dtype in (
              ([-1, -2, 0, 3], [1, 2, 1, 7], np.float32),
              ([-1, -2, 0, 3], [1, 2, 1, 7], np.float64),
              ([-0.1, 1e-3], [0.3, 1.1e-3], np.float32),
              ([0, -_INF, -_INF], [_INF, 0.5, _INF], np.float32),
              ([0, -_INF, -_INF, 2], [_INF, 0.5, _INF, 4], np.float64),
              ([-_WIDEST, 0], [_WIDEST, _WIDEST], np.float32),
              ([5], [5], np.float32),
              ([[-1, 0, -_INF], [2, 4, -3]], [[1, 8, _INF], [3, 4, _INF]],
               np.float32))]


def _naive(space, action):
  """One number after the other, in the precision of Python."""
  result = np.zeros(action.shape)
  for place in np.ndindex(action.shape):
    low = float(space.low[place[1:]])
    high = float(space.high[place[1:]])
    value = float(action[place])
    if np.isfinite(low) and np.isfinite(high):
      share = (min(max(value, -1), 1) + 1) / 2
      result[place] = low * (1 - share) + high * share
    else:
      result[place] = min(max(value, low), high)
  return result


@pytest.mark.parametrize("space", _BOXES, ids=str)
def test_actions_span_the_bounds_and_stay_within(space):
  convert = block.action_converter(space)
  random = np.random.default_rng(0)
  for scale in (0.3, 1, 3, 1e6, 1e37):
    action = random.normal(0, scale, (50, *space.shape)).astype(np.float32)
    before = action.copy()
    with np.errstate(all="raise"):
      converted = convert(action)
    assert (action == before).all()
    assert all(space.contains(row) for row in converted)
    np.testing.assert_allclose(
        converted, _naive(space, action), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("space", _BOXES, ids=str)
def test_bounds_are_reached(space):
  convert = block.action_converter(space)
  ones = np.ones((1, *space.shape), np.float32)
  low, high = convert(-ones)[0], convert(ones)[0]
  bounded = np.isfinite(space.low) & np.isfinite(space.high)
  np.testing.assert_allclose(low[bounded], space.low[bounded], rtol=1e-6)
  np.testing.assert_allclose(high[bounded], space.high[bounded], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_leave_the_space(dtype):
  random = np.random.default_rng(0)
  low = random.normal(0, 10, 1000).astype(dtype)
  space = gymnasium.spaces.Box(
      low, low + random.exponential(3, 1000).astype(dtype), dtype=dtype)
  converted = block.action_converter(space)(
      np.array([[-1] * 1000, [1] * 1000], np.float32))
  assert all(space.contains(row) for row in converted)


def test_unbounded_actions_are_left_alone():
  space = gymnasium.spaces.Box(-_INF, _INF, (2,), np.float32)
  action = np.array([[-1e30, 3], [0.1, 7]], np.float32)
  converted = block.action_converter(space)(action)
  assert converted.tobytes() == action.tobytes()


def test_one_bound_clips_without_scaling():
  space = gymnasium.spaces.Box(
      np.array([0.0, -_INF], np.float32), np.array([_INF, 0.5], np.float32))
  action = np.array([[-3, -3], [0.25, 0.25], [3, 3]], np.float32)
  assert block.action_converter(space)(action).tolist() == [
      [0, -3], [0.25, 0.25], [3, 0.5]]


def test_discrete_actions_count_from_the_start():
  space = gymnasium.spaces.Discrete(3, start=-1)
  converted = block.action_converter(space)(np.arange(3))
  assert converted == [-1, 0, 1]
  assert all(type(action) is int for action in converted)


@pytest.mark.parametrize(
    "space", [*_BOXES, gymnasium.spaces.Discrete(3, start=5)], ids=str)
def test_environments_receive_what_their_space_contains(mode, space):
  # The environment itself raises if they do not.
  with batch_env.BatchEnv(
      [functools.partial(odd.Strict, space)] * 3, mode) as batch:
    batch.reset()
    for action in rollouts.draw_actions(space, 3, 20):
      batch.step(action)
      for received in batch.get("received"):
        assert space.contains(received)


@pytest.mark.parametrize("fault, where, step", [
    ("reset", "reset", 0), ("raise", "step", 1)])
def test_error_arrives_as_itself_with_its_place(
    mode, fault, where, step):
  constructors = [toy.Counter, toy.Counter,
                  functools.partial(toy.Faulty, fault)]
  with batch_env.BatchEnv(constructors, mode, seed=4) as batch:
    with pytest.raises(ValueError, match=f"^faulty {where}$") as caught:
      batch.reset()
      for _ in range(2):
        batch.step(np.zeros((3, 1)))
  cause = caught.value.__cause__
  assert isinstance(cause, members.EnvironmentFailure)
  text = str(cause)
  assert "Environment 2 ('Faulty'" in text
  assert f"seed {episodes.episode_seed(4, 2, 0)}" in text
  assert f"step {step} of its episode" in text
  assert f"failed in {where}()" in text
  assert "Traceback" in text and "toy.py" in text
  assert f'raise ValueError("faulty {where}")' in text


def test_error_of_a_constructor(mode):
  # Of a pool of its own, because this one will not have what it asked for.
  constructors = [toy.Counter, functools.partial(toy.Faulty, "constructor")]
  with workers_lib.Workers(2) as workers:
    with pytest.raises(ValueError, match="faulty constructor") as caught:
      batch_env.BatchEnv(constructors, workers if mode else None)
  text = str(caught.value.__cause__)
  assert "Environment 1" in text and "Faulty" in text
  assert "its constructor" in text and "toy.py" in text


def test_error_of_a_registered_environment_names_its_id(mode):
  constructors = rollouts.BATCHES["cheetah"]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    with pytest.raises(AttributeError) as caught:
      batch.call("fly")
  assert "'HalfCheetah-v5'" in str(caught.value.__cause__)


def test_seed_and_step_are_those_of_the_running_episode(mode):
  constructor = functools.partial(toy.Faulty, "raise", 1)
  with batch_env.BatchEnv([constructor] * 2, mode, seed=4) as batch:
    batch.reset()
    for _ in range(3):  # Episodes of one step never reach the fault.
      batch.step(np.zeros((2, 1)))
    with pytest.raises(AttributeError) as caught:
      batch.call("fly")
  text = str(caught.value.__cause__)
  assert f"seed {episodes.episode_seed(4, 0, 3)}, step 0" in text


def test_exit_of_an_environment_does_not_end_the_trainer(mode):
  constructors = [toy.Counter, functools.partial(toy.Faulty, "exit")]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(
        members.EnvironmentFailure, match="(?s)Environment 1.*SystemExit"):
      batch.step(np.zeros((2, 1)))


@pytest.mark.parametrize("error", [
    odd.Unpicklable, functools.partial(odd.Unbuildable, "un", "buildable")])
def test_error_that_does_not_travel_is_told(pool, error):
  constructors = [toy.Counter, functools.partial(odd.Raises, error)]
  with batch_env.BatchEnv(constructors, pool) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(
        members.EnvironmentFailure, match="(?s)Environment 1.*Traceback"
    ) as caught:
      batch.step(np.zeros((2, 1)))
  assert "odd.Un" in str(caught.value)


def test_error_that_counts_as_false_is_an_error(mode):
  with batch_env.BatchEnv(
      [functools.partial(odd.Raises, odd.Empty)], mode) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(odd.Empty):
      batch.step(np.zeros((1, 1)))


def test_error_of_a_local_class_is_of_that_class(mode):
  class Local(Exception):
    pass
  with batch_env.BatchEnv(
      [functools.partial(odd.Raises, Local)], mode) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(Local):
      batch.step(np.zeros((1, 1)))


@pytest.mark.parametrize("what, where", [
    ("reset", "reset()"), ("observ", "step()"), ("reward", "step()")])
def test_what_does_not_fit_is_blamed_on_the_environment(
    mode, what, where):
  constructors = [toy.Counter, functools.partial(odd.Misfit, what)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    with pytest.raises((TypeError, ValueError)) as caught:
      batch.reset()
      batch.step(np.zeros((2, 1)))
  text = str(caught.value.__cause__)
  assert "Environment 1 ('Misfit'" in text and where in text


def test_workers_serve_the_next_batch_after_an_error(mode):
  with batch_env.BatchEnv(
      [toy.Counter, functools.partial(toy.Faulty, "raise")], mode) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(ValueError):
      batch.step(np.zeros((2, 1)))
  rollouts.assert_same_bits(
      rollouts.play(rollouts.BATCHES["toy"], None)[1],
      rollouts.play(rollouts.BATCHES["toy"], mode)[1])


def test_workers_serve_the_next_batch_after_a_failed_one():
  constructors = [toy.Counter, functools.partial(toy.Faulty, "constructor")]
  with workers_lib.Workers(2) as workers:
    with pytest.raises(ValueError):
      batch_env.BatchEnv(constructors, workers)
    rollouts.assert_same_bits(
        rollouts.play(rollouts.BATCHES["toy"], None)[1],
        rollouts.play(rollouts.BATCHES["toy"], workers)[1])


def test_spaces_within_a_batch_must_be_alike(mode):
  with workers_lib.Workers(2) as workers:
    with pytest.raises(ValueError, match="must be alike") as caught:
      batch_env.BatchEnv(
          [toy.Counter, toy.Target], workers if mode else None)
  assert "Environment 1" in str(caught.value.__cause__)


@pytest.mark.parametrize("space", [
    gymnasium.spaces.Text(3), gymnasium.spaces.Dict(
        {"a": gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(2))})])
def test_spaces_that_no_array_holds(mode, space):
  with pytest.raises(TypeError, match=type(space).__name__):
    batch_env.BatchEnv([functools.partial(odd.Strict, space)], mode)


def test_needs_an_environment():
  with pytest.raises(ValueError, match="at least one"):
    batch_env.BatchEnv([])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("what", ["observ", "reward"])
def test_what_is_not_finite_is_blamed_on_the_environment(mode, what, value):
  constructors = [toy.Counter, functools.partial(odd.Infinite, what, value)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="not finite") as caught:
      batch.step(np.zeros((2, 1)))
  assert "Environment 1 ('Infinite'" in str(caught.value.__cause__)
