"""LazyBatchEnv builds its environments before their first use."""

import functools

import pytest

from agents.environments import lazy_batch_env
from tests import toy
from tests.environments import faulty_envs, rollouts


def test_environments_are_built_by_the_first_use(mode, tmp_path):
  path = tmp_path / "log"
  constructors = [functools.partial(faulty_envs.LogsLifetime, path, name) for name in "abc"]
  batch = lazy_batch_env.LazyBatchEnv(constructors, mode)
  assert rollouts.count_open(path) == {}
  assert batch.observation_space == toy.Counter().observation_space
  batch.reset()
  assert rollouts.count_open(path) == {"a": 1, "b": 1, "c": 1}
  assert not batch.is_closed
  batch.close()
  assert batch.is_closed
  assert rollouts.count_open(path) == {}


def test_unused_environments_are_never_built(mode, tmp_path):
  path = tmp_path / "log"
  batch = lazy_batch_env.LazyBatchEnv(
    [functools.partial(faulty_envs.LogsLifetime, path, "a")] * 2, mode
  )
  batch.close()
  assert rollouts.count_open(path) == {}
  with pytest.raises(RuntimeError, match="closed"):
    batch.reset()
  # Only the environment that provided the spaces was built.
  assert path.read_text().splitlines() == ["built a", "closed a"]


def test_lazy_batch_returns_the_results_of_batch_env(mode):
  expected = rollouts.play(rollouts.BATCHES["toy"], None)[1]
  with lazy_batch_env.LazyBatchEnv(rollouts.BATCHES["toy"], mode) as batch:
    batch.reset()
    rollouts.assert_same_bits(
      expected, rollouts.roll(batch, rollouts.draw_actions(batch.action_space, 5, 60))
    )


def test_snapshot_can_be_restored_into_an_unused_batch(mode):
  constructors = rollouts.BATCHES["toy"]
  with lazy_batch_env.LazyBatchEnv(constructors, mode) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, 20)
    rollouts.roll(batch, actions[:7])
    state = batch.snapshot()
    expected = rollouts.roll(batch, actions[7:])
  with lazy_batch_env.LazyBatchEnv(constructors, mode) as batch:
    assert batch.restore(state)
    rollouts.assert_same_bits(expected, rollouts.roll(batch, actions[7:]))
