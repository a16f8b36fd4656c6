"""Statistics describe the episodes between two reports."""

import numpy as np

from agents.environments.data import episode_data
from agents.training import epoch_result


def _episodes(*episodes):
  """Returns episodes; each one is given as (length, score, info)."""
  return [
    episode_data.Episode(0, np.zeros((length, 1)), score, info) for length, score, info in episodes
  ]


def test_episodes_truncated_to_stagger_are_excluded():
  statistics = epoch_result.Statistics()
  statistics.add(
    _episodes(
      (10, 1.0, {"reward_parts": {"reward_run": 2.0}, "randomization_mass": 1.5}),
      (3, 99.0, {"reward_parts": {"reward_run": 9.0}, "cut_short": 1.0}),
    )
  )
  statistics.add(_episodes())
  statistics.add(
    _episodes(
      (20, 3.0, {"reward_parts": {"reward_run": 4, "reward_jump": 1}, "randomization_mass": 0.5})
    )
  )
  assert statistics.row() == {
    "episodes": 2,
    "return_mean": 2.0,
    "return_std": 1.0,
    "return_min": 1.0,
    "return_max": 3.0,
    "length_mean": 15.0,
  }
  assert statistics.mean_infos() == {
    "reward_parts/run": 3.0,
    "reward_parts/jump": 0.5,
    "randomization/mass": 1.0,
  }


def test_statistics_without_episodes_are_none():
  row = epoch_result.Statistics().row()
  assert row.pop("episodes") == 0
  assert set(row.values()) == {None}
  assert epoch_result.Statistics().mean_infos() == {}
