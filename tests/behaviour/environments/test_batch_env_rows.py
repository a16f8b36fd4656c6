"""Batches of which each machine steps some rows."""

import numpy as np
import pytest

from agents.environments import batch_env
from tests import toy

_ENVS = [toy.Counter] * 6


@pytest.fixture
def batches():
  whole = batch_env.BatchEnv(_ENVS, seed=3, groups=2)
  parts = [batch_env.BatchEnv(_ENVS, seed=3, groups=groups, rows=rows)
           for rows, groups in ((slice(0, 2), 1), (slice(2, 6), 2))]
  yield whole, parts
  for batch in (whole, *parts):
    batch.close()


def test_rows_are_stepped_as_in_the_whole_batch(batches):
  whole, parts = batches
  np.testing.assert_array_equal(
      whole.reset(), np.concatenate([part.reset() for part in parts]))
  for time in range(40):
    shape = whole.action_layout.fields[0].shape[1:]
    action = np.full((6, *shape), time % 2, whole.action_layout.fields[0].dtype)
    step = whole.step(action)
    steps = [part.step(action[part.rows]) for part in parts]
    for field in step._fields:
      np.testing.assert_array_equal(getattr(step, field), np.concatenate(
          [getattr(each, field) for each in steps]))
  assert sorted(episode.seed for episode in whole.finished) == sorted(
      episode.seed for part in parts for episode in part.finished)


def test_snapshots_of_rows_are_those_of_the_whole_batch(batches):
  whole, parts = batches
  for batch in (whole, *parts):
    batch.reset()
  shape = whole.action_layout.fields[0].shape[1:]
  rng = np.random.default_rng(0)
  for amount in (3, 1, 40, 5):
    actions = rng.integers(0, 2, (amount, 6, *shape)).astype(
        whole.action_layout.fields[0].dtype)
    for action in actions:
      whole.step(action)
      for part in parts:
        part.step(action[part.rows])
    expected = whole.snapshot().arrays()
    told = [part.part() for part in parts]
    for index, part in enumerate(parts):
      found = part.snapshot([told[1 - index]], actions).arrays()
      assert found.keys() == expected.keys()
      for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, name)


def test_a_snapshot_of_the_whole_batch_goes_on_in_rows(batches):
  whole, parts = batches
  whole.reset()
  shape = whole.action_layout.fields[0].shape[1:]
  action = np.ones((6, *shape), whole.action_layout.fields[0].dtype)
  for _ in range(5):
    whole.step(action)
  running = whole.snapshot()
  for part in parts:
    assert part.restore(running)
  step = whole.step(action)
  np.testing.assert_array_equal(step.observ, np.concatenate(
      [part.step(action[part.rows]).observ for part in parts]))


def test_indices_are_those_of_the_whole_batch(batches):
  _, (_, part) = batches
  part.reset()
  assert len(part.get("spec")) == 4
  assert len(part.get("spec", indices=[5, 2])) == 2
  with pytest.raises(ValueError, match="different ones of 2 to 5"):
    part.get("spec", indices=[0])
