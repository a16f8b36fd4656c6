"""Merged episodes of several machines equal the episodes of one machine."""

import numpy as np
import pytest
import tensorflow as tf

from agents import errors
from agents.distributed import rollout_status
from agents.environments.data import episode_data
from agents.training import epoch_result


def _status(rows, length, finished=()):
  """Returns a status. Values are 10 * environment; seeds are one higher."""
  values = 10 * np.array(rows)
  length = np.array(length)
  return rollout_status.RolloutStatus(
    episode_data.EpisodeState(
      values, values + 1, values[:, None], values.astype(np.float32), -length, np.zeros((0, 0))
    ),
    list(finished),
    [],
    0.0,
  )


def _actions(first, last):
  """Returns actions [T, 3] with the values 100 * time + environment."""
  return 100.0 * np.arange(first, last)[:, None] + np.arange(3)


def test_merged_episodes_are_in_the_order_of_environments():
  merged = rollout_status.merge_episodes(
    [_status([0, 1], [2, 1]), _status([2], [3])], None, _actions(0, 4)
  )
  assert merged.episode.tolist() == [0, 10, 20]
  assert merged.seed.tolist() == [1, 11, 21]
  assert merged.observ.tolist() == [[0], [10], [20]]
  assert merged.score.tolist() == [0, 10, 20]
  assert merged.length.tolist() == [2, 1, 3]
  assert [merged.episode_actions(index).tolist() for index in range(3)] == [
    [200, 300],
    [301],
    [102, 202, 302],
  ]


def test_merged_episodes_continue_the_episodes_of_the_previous_exchange():
  before = rollout_status.merge_episodes(
    [_status([0, 1], [2, 1]), _status([2], [3])], None, _actions(0, 4)
  )
  merged = rollout_status.merge_episodes(
    [_status([0, 1], [4, 0]), _status([2], [5])], before, _actions(4, 6)
  )
  assert [merged.episode_actions(index).tolist() for index in range(3)] == [
    [200, 300, 400, 500],
    [],
    [102, 202, 302, 402, 502],
  ]
  assert len(merged.actions) == 5  # Older actions are removed.


def test_merged_episodes_without_steps_have_no_actions():
  merged = rollout_status.merge_episodes([_status([0, 1], [0, 0]), _status([2], [0])], None, None)
  assert merged.length.tolist() == [0, 0, 0]
  assert merged.arrays()["action"].size == 0


def _episode(seed):
  return episode_data.Episode(seed, np.zeros((1, 1)), 0.0, {})


def test_finished_episodes_are_in_order_of_time_and_environment():
  ended = np.zeros((3, 4), bool)
  ended[[0, 0, 1, 2, 2], [1, 2, 3, 0, 2]] = True
  samples = epoch_result.Samples(*[tf.zeros([0])] * 3, tf.constant(ended), *[tf.zeros([0])] * 2)
  statuses = [
    _status([0, 1], [0, 0], map(_episode, (1, 20))),
    _status([2, 3], [0, 0], map(_episode, (2, 13, 22))),
  ]
  merged = rollout_status.merge_finished(statuses, samples)
  # A seed is 10 * time + environment.
  assert [episode.seed for episode in merged] == [1, 2, 13, 20, 22]


def test_different_values_are_an_error_that_names_the_machine():
  rollout_status.check_equal(["same"] * 3)
  with pytest.raises(errors.MachinesDiffer, match="^Machine 2 computed"):
    rollout_status.check_equal(["same", "same", "other"])
