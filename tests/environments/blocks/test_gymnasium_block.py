"""Whatever goes wrong names its environment."""

import functools

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.data import episodes
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts


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
  assert isinstance(cause, base.EnvironmentFailure)
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
        base.EnvironmentFailure, match="(?s)Environment 1.*SystemExit"):
      batch.step(np.zeros((2, 1)))


@pytest.mark.parametrize("error", [
    faulty_envs.Unpicklable, functools.partial(faulty_envs.Unbuildable, "un", "buildable")])
def test_error_that_does_not_travel_is_told(pool, error):
  constructors = [toy.Counter, functools.partial(faulty_envs.Raises, error)]
  with batch_env.BatchEnv(constructors, pool) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(
        base.EnvironmentFailure, match="(?s)Environment 1.*Traceback"
    ) as caught:
      batch.step(np.zeros((2, 1)))
  assert "faulty_envs.Un" in str(caught.value)


def test_error_that_counts_as_false_is_an_error(mode):
  with batch_env.BatchEnv(
      [functools.partial(faulty_envs.Raises, faulty_envs.Empty)], mode) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(faulty_envs.Empty):
      batch.step(np.zeros((1, 1)))


def test_error_of_a_local_class_is_of_that_class(mode):
  class Local(Exception):
    pass
  with batch_env.BatchEnv(
      [functools.partial(faulty_envs.Raises, Local)], mode) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(Local):
      batch.step(np.zeros((1, 1)))


@pytest.mark.parametrize("what, where", [
    ("reset", "reset()"), ("observ", "step()"), ("reward", "step()")])
def test_what_does_not_fit_is_blamed_on_the_environment(
    mode, what, where):
  constructors = [toy.Counter, functools.partial(faulty_envs.Misfit, what)]
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
  with pool_lib.WorkerPool(2) as workers:
    with pytest.raises(ValueError):
      batch_env.BatchEnv(constructors, workers)
    rollouts.assert_same_bits(
        rollouts.play(rollouts.BATCHES["toy"], None)[1],
        rollouts.play(rollouts.BATCHES["toy"], workers)[1])


def test_spaces_within_a_batch_must_be_alike(mode):
  with pool_lib.WorkerPool(2) as workers:
    with pytest.raises(ValueError, match="must be alike") as caught:
      batch_env.BatchEnv(
          [toy.Counter, toy.Target], workers if mode else None)
  assert "Environment 1" in str(caught.value.__cause__)


@pytest.mark.parametrize("space", [
    gymnasium.spaces.Text(3), gymnasium.spaces.Dict(
        {"a": gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(2))})])
def test_spaces_that_no_array_holds(mode, space):
  with pytest.raises(TypeError, match=type(space).__name__):
    batch_env.BatchEnv([functools.partial(faulty_envs.Strict, space)], mode)


def test_needs_an_environment():
  with pytest.raises(ValueError, match="at least one"):
    batch_env.BatchEnv([])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("what", ["observ", "reward"])
def test_what_is_not_finite_is_blamed_on_the_environment(mode, what, value):
  constructors = [toy.Counter, functools.partial(faulty_envs.Infinite, what, value)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="not finite") as caught:
      batch.step(np.zeros((2, 1)))
  assert "Environment 1 ('Infinite'" in str(caught.value.__cause__)
