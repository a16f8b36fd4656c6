"""BackgroundBatchEnv does not wait for its workers."""

import functools
import os
import signal
import time

import pytest

from agents.environments import background_batch_env, batch_env
from agents.environments.data import failure_budget
from agents.environments.workers import pool as pool_lib
from tests.environments import faulty_envs, rollouts


def test_background_batch_returns_the_results_of_batch_env(mode):
  expected = rollouts.play(rollouts.BATCHES["toy"], None)[1]
  with background_batch_env.BackgroundBatchEnv(rollouts.BATCHES["toy"], mode) as batch:
    batch.reset()
    rollouts.assert_same_bits(
      expected, rollouts.roll(batch, rollouts.draw_actions(batch.action_space, 5, 60))
    )


def test_constructor_does_not_wait_for_the_environments(tmp_path):
  path, release = tmp_path / "log", tmp_path / "release"
  first, *others = [functools.partial(faulty_envs.LogsLifetime, path, name) for name in "abc"]
  constructors = [first, *(functools.partial(_build_after, release, other) for other in others)]
  with pool_lib.WorkerPool(2) as workers:
    with background_batch_env.BackgroundBatchEnv(constructors, workers) as batch:
      assert not rollouts.count_open(path).keys() & {"b", "c"}
      release.touch()
      batch.wait_until_built()
      assert rollouts.count_open(path) == {"a": 1, "b": 1, "c": 1}
      batch.wait_until_built()
    assert rollouts.count_open(path) == {}


def _build_after(path, constructor):
  """Builds an environment as soon as a file exists."""
  while not path.exists():
    time.sleep(0.01)
  return constructor()


def test_batch_that_was_never_used_is_closed(mode, tmp_path):
  path = tmp_path / "log"
  constructors = [functools.partial(faulty_envs.LogsLifetime, path, name) for name in "abc"]
  batch = background_batch_env.BackgroundBatchEnv(constructors, mode)
  batch.close()
  assert rollouts.count_open(path) == {}
  with pytest.raises(RuntimeError, match="closed"):
    batch.reset()


def test_failed_constructor_is_reported_by_the_wait(pool, tmp_path):
  good = functools.partial(faulty_envs.LogsLifetime, tmp_path / "log")
  batch = background_batch_env.BackgroundBatchEnv(
    [good, functools.partial(good, fault="constructor")], pool
  )
  with batch_env.BatchEnv([good], pool) as other:  # Workers answer in order of requests.
    with pytest.raises(ValueError, match="faulty constructor") as error:
      batch.wait_until_built()
    assert "Environment 1" in str(error.value.__cause__)
    other.reset()
  batch.close()
  assert batch.is_closed
  with pytest.raises(RuntimeError, match="closed"):
    batch.reset()


@pytest.mark.parametrize("answered", [False, True])
def test_worker_that_dies_is_replaced(answered, tmp_path):
  """The worker dies while it builds its environments, or afterwards."""
  budget = failure_budget.FailureBudget(1)
  toys, release = rollouts.BATCHES["toy"], tmp_path / "release"
  expected = rollouts.play(toys, None)[1]
  first, second, *rest = toys
  with pool_lib.WorkerPool(2, failure_budget=budget) as workers:
    if answered:
      release.touch()
    batch = background_batch_env.BackgroundBatchEnv(
      [first, functools.partial(_build_after, release, second), *rest], workers
    )
    later = batch_env.BatchEnv if answered else background_batch_env.BackgroundBatchEnv
    others = later(toys, workers)
    os.kill(workers.pids[0], signal.SIGKILL)
    release.touch()
    # Both batches are rebuilt in the new process, whichever is used first.
    for env in (others, batch):
      env.reset()
      actual = rollouts.roll(env, rollouts.draw_actions(env.action_space, 5, 60))
      rollouts.assert_same_bits(expected, actual)
  assert len(budget.drain()) == 1
