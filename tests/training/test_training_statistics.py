"""Scores are counted from one report to the next."""

import numpy as np
import tensorflow as tf

from agents.environments.data import episodes
from agents.training import epoch_result
from agents.training import training_statistics


def _epoch(*played):
  """An epoch whose episodes have these lengths, scores and infos."""
  nothing = tf.zeros([0])
  return epoch_result.Epoch({}, 0, 0, [
      episodes.Episode(0, np.zeros((length, 1)), score, info)
      for length, score, info in played], 0, {}, 0.0, epoch_result.Samples(
          *[nothing] * len(epoch_result.Samples._fields)))


def test_only_whole_episodes_count():
  counted = training_statistics.TrainingStatistics()
  counted.add(_epoch(
      (10, 1.0, {"reward_parts": {"reward_run": 2.0}}),
      (3, 99.0, {"reward_parts": {"reward_run": 9.0}, "cut_short": 1.0})))
  counted.add(_epoch())
  counted.add(_epoch((20, 3.0, {"reward_parts": {
      "reward_run": 4.0, "reward_jump": 1.0}})))
  assert counted.row() == {
      "episodes": 2, "return_mean": 2.0, "return_std": 1.0, "return_min": 1.0,
      "return_max": 3.0, "length_mean": 15.0}
  assert counted.mean_reward_parts() == {"run": 3.0, "jump": 0.5}


def test_without_episodes_there_are_no_scores():
  row = training_statistics.TrainingStatistics().row()
  assert row.pop("episodes") == 0
  assert set(row.values()) == {None}
  assert training_statistics.TrainingStatistics().mean_reward_parts() == {}
