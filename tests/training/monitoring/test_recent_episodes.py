import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.data import episode_data
from agents.training.monitoring import recent_episodes
from agents.training.run_folder import checkpoint


def _episode(number, length=3):
  action = 10.0 * number + np.arange(2 * length).reshape(length, 2)
  return episode_data.Episode(
    100 + number, action.astype(np.float32), number / 3, {"reward_parts": {}}, number % 4
  )


def _recorder(lengths, step=7):
  recorder = recent_episodes.RecentEpisodes()
  for number, length in enumerate(lengths):
    recorder.add([_episode(number, length)], step + number)
  return recorder


def _numbers(recorder):
  return recorder.arrays()["recorded/number"].tolist()


def test_last_episodes_are_kept_up_to_the_limits():
  assert _recorder([]).last is None
  assert _numbers(_recorder([])) == []
  assert _numbers(_recorder([3] * 40)) == list(range(8, 40))
  assert _numbers(_recorder([3, 9_999, 9_999])) == [1, 2]
  assert _numbers(_recorder([3, 50_000])) == [1]
  assert _numbers(_recorder([50_000, 3])) == [1]


def test_loaded_recorder_equals_the_saved_one():
  first = _recorder([1, 2, 50_000, 4, 1])
  again = recent_episodes.RecentEpisodes()
  again.load(first.arrays())
  number, step, episode = again.last
  assert (number, step) == (4, 11)
  assert (episode.seed, episode.score) == (104, 4 / 3)
  assert episode.action.dtype == np.float32
  np.testing.assert_array_equal(episode.action, _episode(4, 1).action)
  for recorder in (first, again):  # Both recorders continue.
    recorder.add([_episode(5), _episode(6)], 20)
  for name, array in first.arrays().items():
    np.testing.assert_array_equal(array, again.arrays()[name])
  assert _numbers(again) == [3, 4, 5, 6]


def test_checkpoints_of_older_versions_load_without_episodes():
  recorder = recent_episodes.RecentEpisodes()
  recorder.load({})
  assert recorder.last is None


def test_episodes_are_found_in_all_checkpoints(tmp_path):
  for step, lengths in ((10, [2] * 3), (20, [2] * 60)):
    checkpoint.save(tmp_path, step, _recorder(lengths).arrays(), {})
  for number, expected in ((1, 1), (-1, 59), (59, 59), (28, 28), (-2, 58)):
    found = recent_episodes.find(tmp_path, number)
    assert found.number == expected and found.episode.seed == 100 + expected
    np.testing.assert_array_equal(found.episode.action, _episode(expected, 2).action)
  for number in (3, 60, -36):
    with pytest.raises(config_lib.ConfigError) as caught:
      recent_episodes.find(tmp_path, number)
    assert str(caught.value).startswith(f"--episode {number}: no checkpoint")
    assert "Available episodes: 0 to 2, 28 to 59." in str(caught.value)


def test_missing_episodes_raise_errors(tmp_path):
  with pytest.raises(checkpoint.CheckpointError, match="no checkpoint"):
    recent_episodes.find(tmp_path, 0)
  checkpoint.save(tmp_path, 0, _recorder([]).arrays(), {})
  with pytest.raises(config_lib.ConfigError, match=r"episodes: \(none\)\."):
    recent_episodes.find(tmp_path, -1)
