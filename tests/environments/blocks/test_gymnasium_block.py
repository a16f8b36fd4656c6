"""Errors name the environment that failed, its seed and the failed method."""

import functools

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.data import episode_data
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs, rollouts


@pytest.mark.parametrize("fault, method, step", [("reset", "reset", 0), ("raise", "step", 1)])
def test_error_keeps_its_type_and_its_cause_names_environment_and_method(mode, fault, method, step):
  constructors = [toy.Counter, toy.Counter, functools.partial(toy.Faulty, fault)]
  with batch_env.BatchEnv(constructors, mode, seed=4) as batch:
    with pytest.raises(ValueError, match=f"^faulty {method}$") as caught:
      batch.reset()
      for _ in range(2):
        batch.step(np.zeros((3, 1)))
  cause = caught.value.__cause__
  assert isinstance(cause, base.EnvironmentFailure)
  text = str(cause)
  assert "Environment 2 ('Faulty'" in text
  assert f"seed {episode_data.episode_seed(4, 2, 0)}" in text
  assert f"step {step} of its episode" in text
  assert f"failed in {method}()" in text
  assert "Traceback" in text and "toy.py" in text
  assert f'raise ValueError("faulty {method}")' in text


def test_error_of_a_constructor_names_the_environment(mode):
  constructors = [toy.Counter, functools.partial(toy.Faulty, "constructor")]
  with pool_lib.WorkerPool(2) as workers:
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


def test_error_names_seed_and_step_of_the_running_episode(mode):
  constructor = functools.partial(toy.Faulty, "raise", 1)
  with batch_env.BatchEnv([constructor] * 2, mode, seed=4) as batch:
    batch.reset()
    # Episodes end after one step, and `Faulty` fails only in a second step.
    for _ in range(3):
      batch.step(np.zeros((2, 1)))
    with pytest.raises(AttributeError) as caught:
      batch.call("fly")
  text = str(caught.value.__cause__)
  assert f"seed {episode_data.episode_seed(4, 0, 3)}, step 0" in text


def test_system_exit_of_an_environment_does_not_end_the_trainer(mode):
  constructors = [toy.Counter, functools.partial(toy.Faulty, "exit")]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(base.EnvironmentFailure, match="(?s)Environment 1.*SystemExit"):
      batch.step(np.zeros((2, 1)))


@pytest.mark.parametrize(
  "error",
  [
    faulty_envs.FailsToPickleError,
    functools.partial(faulty_envs.FailsToUnpickleError, "first", "second"),
  ],
)
def test_error_that_cannot_be_pickled_arrives_as_text(pool, error):
  constructors = [toy.Counter, functools.partial(faulty_envs.Raises, error)]
  with batch_env.BatchEnv(constructors, pool) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(base.EnvironmentFailure, match="(?s)Environment 1.*Traceback") as caught:
      batch.step(np.zeros((2, 1)))
  assert "faulty_envs.FailsTo" in str(caught.value)


def test_error_that_is_false_in_a_boolean_context_is_raised(mode):
  constructor = functools.partial(faulty_envs.Raises, faulty_envs.FalsyError)
  with batch_env.BatchEnv([constructor], mode) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(faulty_envs.FalsyError):
      batch.step(np.zeros((1, 1)))


def test_error_of_a_local_class_keeps_its_class(mode):
  class Local(Exception):
    pass

  with batch_env.BatchEnv([functools.partial(faulty_envs.Raises, Local)], mode) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(Local):
      batch.step(np.zeros((1, 1)))


@pytest.mark.parametrize(
  "fault, method", [("reset", "reset()"), ("observ", "step()"), ("reward", "step()")]
)
def test_values_of_a_wrong_shape_or_type_are_errors_of_the_environment(mode, fault, method):
  constructors = [toy.Counter, functools.partial(faulty_envs.WrongShapeOrType, fault)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    with pytest.raises((TypeError, ValueError)) as caught:
      batch.reset()
      batch.step(np.zeros((2, 1)))
  text = str(caught.value.__cause__)
  assert "Environment 1 ('WrongShapeOrType'" in text and method in text


def test_workers_are_usable_after_an_error_of_an_environment(mode):
  with batch_env.BatchEnv([toy.Counter, functools.partial(toy.Faulty, "raise")], mode) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(ValueError):
      batch.step(np.zeros((2, 1)))
  rollouts.assert_same_bits(
    rollouts.play(rollouts.BATCHES["toy"], None)[1], rollouts.play(rollouts.BATCHES["toy"], mode)[1]
  )


def test_workers_are_usable_after_an_error_of_a_constructor():
  constructors = [toy.Counter, functools.partial(toy.Faulty, "constructor")]
  with pool_lib.WorkerPool(2) as workers:
    with pytest.raises(ValueError):
      batch_env.BatchEnv(constructors, workers)
    rollouts.assert_same_bits(
      rollouts.play(rollouts.BATCHES["toy"], None)[1],
      rollouts.play(rollouts.BATCHES["toy"], workers)[1],
    )


def test_different_spaces_within_a_batch_are_refused(mode):
  with pool_lib.WorkerPool(2) as workers:
    with pytest.raises(ValueError, match="must have equal spaces") as caught:
      batch_env.BatchEnv([toy.Counter, toy.Target], workers if mode else None)
  assert "Environment 1" in str(caught.value.__cause__)


@pytest.mark.parametrize(
  "space",
  [
    gymnasium.spaces.Text(3),
    gymnasium.spaces.Dict({"a": gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(2))}),
  ],
)
def test_spaces_without_arrays_are_refused(mode, space):
  with pytest.raises(TypeError, match=type(space).__name__):
    batch_env.BatchEnv([functools.partial(faulty_envs.ChecksActions, space)], mode)


def test_empty_batch_is_refused():
  with pytest.raises(ValueError, match="at least one"):
    batch_env.BatchEnv([])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["observ", "reward"])
def test_numbers_that_are_not_finite_are_errors_of_the_environment(mode, field, value):
  constructors = [toy.Counter, functools.partial(faulty_envs.Infinite, field, value)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="not finite") as caught:
      batch.step(np.zeros((2, 1)))
  assert "Environment 1 ('Infinite'" in str(caught.value.__cause__)
