"""Batches of some environments of a run equal rows of the complete batch."""

import functools

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.data import episode_data
from tests import toy

_SIZE = 6
_SHARES = slice(0, 2), slice(2, 6)
_CONSTRUCTORS = [functools.partial(toy.Counter, length) for length in (1, 2, 3, 4, 5, 6)]


@pytest.fixture
def batches():
  """Returns a batch of all environments, and one batch for each share."""
  complete = batch_env.BatchEnv(_CONSTRUCTORS, seed=3)
  parts = [batch_env.BatchEnv(_CONSTRUCTORS[rows], seed=3, first=rows.start) for rows in _SHARES]
  yield complete, parts
  for batch in (complete, *parts):
    batch.close()


def _actions(num_steps):
  return np.random.default_rng(0).normal(0, 1, (num_steps, _SIZE, 1)).astype(np.float32)


def test_step_results_equal_the_rows_of_the_complete_batch(batches):
  complete, parts = batches
  np.testing.assert_array_equal(complete.reset(), np.concatenate([part.reset() for part in parts]))
  for action in _actions(40):
    step = complete.step(action)
    part_steps = [part.step(action[rows]) for part, rows in zip(parts, _SHARES, strict=True)]
    for field in step._fields:
      np.testing.assert_array_equal(
        getattr(step, field),
        np.concatenate([getattr(part_step, field) for part_step in part_steps]),
      )
  finished = complete.take_finished()
  assert len(finished) > 40
  assert sorted(episode.seed for episode in finished) == sorted(
    episode.seed for part in parts for episode in part.take_finished()
  )


def test_snapshots_equal_the_rows_of_the_complete_batch(batches):
  complete, parts = batches
  for batch in (complete, *parts):
    batch.reset()
  for action in _actions(49):
    complete.step(action)
    expected = complete.snapshot()
    for part, rows in zip(parts, _SHARES, strict=True):
      part.step(action[rows])
      state = part.snapshot()
      for name in ("episode", "seed", "observ", "score", "length"):
        np.testing.assert_array_equal(getattr(state, name), getattr(expected, name)[rows], name)
      for index in range(len(part)):
        np.testing.assert_array_equal(
          state.episode_actions(index), expected.episode_actions(rows.start + index)
        )


def test_rows_of_a_complete_snapshot_can_be_restored(batches):
  complete, parts = batches
  complete.reset()
  actions = _actions(20)
  for action in actions[:5]:
    complete.step(action)
  state = complete.snapshot()
  for part, rows in zip(parts, _SHARES, strict=True):
    fields = {
      name: getattr(state, name)[rows]
      for name in ("episode", "seed", "observ", "score", "first_row")
    }
    assert part.restore(episode_data.EpisodeState(**fields, actions=state.actions[:, rows]))
  for action in actions[5:]:
    np.testing.assert_array_equal(
      complete.step(action).observ,
      np.concatenate(
        [part.step(action[rows]).observ for part, rows in zip(parts, _SHARES, strict=True)]
      ),
    )


def test_indices_of_requests_count_from_zero_in_each_batch(batches):
  _, (_, part) = batches
  part.reset()
  assert part.get("length") == [3, 4, 5, 6]
  assert part.get("length", indices=[3, 0]) == [6, 3]
  with pytest.raises(ValueError, match="distinct numbers from 0 to 3"):
    part.get("length", indices=[4])


def test_errors_name_the_index_in_the_complete_batch():
  constructors = [toy.Counter, functools.partial(toy.Faulty, "raise")]
  with batch_env.BatchEnv(constructors, seed=3, first=4) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="Environment 5 cannot wait"):
      batch.step(np.zeros((2, 1)), np.array([True, False]))
    with pytest.raises(ValueError, match="faulty step") as caught:
      batch.step(np.zeros((2, 1)))
    failure = caught.value.__cause__
    assert isinstance(failure, base.EnvironmentFailure)
    assert "Environment 5" in str(failure)
    (failed,) = batch.failure_budget.fatal.episodes
    assert (failed.environment, failed.seed, len(failed.action)) == (
      5,
      episode_data.episode_seed(3, 5, 0),
      2,
    )
