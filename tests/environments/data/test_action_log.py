"""ActionLog records seeds, actions and scores of the running episodes."""

import numpy as np
import pytest

from agents.environments.data import action_log, episode_data
from tests.environments import logs

_TRUE = np.array([True] * 4)


@logs.pauses
def test_log_contains_the_running_episodes(pause_probability):
  for moment in logs.play(pause_probability):
    state = moment.log.snapshot(moment.observ)
    assert state.episode.tolist() == moment.episode
    assert state.seed.tolist() == [
      episode_data.episode_seed(logs.RUN_SEED, row, episode)
      for row, episode in enumerate(moment.episode)
    ]
    assert state.observ.tolist() == moment.observ.tolist()
    assert [state.episode_actions(row).tolist() for row in range(4)] == moment.actions
    assert state.length.tolist() == list(map(len, moment.actions))
    assert state.score.dtype == np.float32
    assert state.score.tolist() == moment.scores


@logs.pauses
def test_record_returns_the_episodes_that_ended(pause_probability):
  counts, rounded = set(), False
  for moment in logs.play(pause_probability, num_steps=200):
    assert moment.finished == moment.expected
    assert list(moment.finished) == sorted(moment.finished)
    counts.add(len(moment.finished))
    for rewards in moment.rewards:
      rounded |= logs.float32_sum(rewards) != float(np.sum(rewards, dtype=np.float64))
  assert counts >= {0, 1, 2}
  assert rounded, "All float32 scores equal the float64 scores."


@logs.pauses
def test_log_drops_rows_before_the_oldest_running_episode(pause_probability):
  for moment in logs.play(pause_probability):
    assert len(moment.log.state.actions) == max(map(len, moment.actions))


@pytest.mark.parametrize("first", [0, 3])
def test_seeds_depend_on_the_index_of_the_first_environment(first):
  log = action_log.ActionLog(logs.RUN_SEED, 4, first)
  assert not log.begun
  for episode in range(3):
    seeds = [episode_data.episode_seed(logs.RUN_SEED, first + row, episode) for row in range(4)]
    if episode == 0:
      assert log.begin() == seeds
    assert log.begun and log.state.seed.tolist() == seeds
    log.record(np.zeros((4, 1)), _TRUE, np.zeros(4, np.float32), _TRUE)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("active", [True, False])
def test_loaded_snapshot_is_not_changed_by_later_steps(active, ended):
  active = np.array([active] * 4)
  ended = np.array([ended] * 4) & active
  snapshots = [moment.log.snapshot(moment.observ.copy()) for moment in logs.play(0.6)]
  texts = [repr(state) for state in snapshots]
  assert len(set(texts)) == len(texts)
  log = action_log.ActionLog(logs.RUN_SEED, 4)
  for state, text in zip(snapshots, texts):
    log.load(state)
    log.record(np.zeros((4, 1)), active, np.ones(4, np.float32), ended)
    assert repr(state) == text


@logs.pauses
def test_snapshots_do_not_change_while_the_log_continues(pause_probability):
  snapshots = []
  for moment in logs.play(pause_probability, num_steps=300):
    snapshots.append(
      (moment.log.snapshot(moment.observ), [list(actions) for actions in moment.actions])
    )
  for state, actions in snapshots:
    assert [state.episode_actions(row).tolist() for row in range(4)] == actions


@logs.pauses
def test_log_continues_the_scores_of_a_snapshot(pause_probability):
  snapshots, before = [], []
  for moment in logs.play(pause_probability):
    snapshots.append(moment.log.snapshot(moment.observ).arrays())
    before.append((moment.scores, list(map(len, moment.rewards))))
  log = action_log.ActionLog(logs.RUN_SEED, 4)
  reward = np.arange(4, dtype=np.float32) / 3

  def finish():
    finished = log.record(np.zeros((4, 1)), _TRUE, reward, _TRUE)
    return {row: (episode.score, episode.length) for row, episode in finished.items()}

  for arrays, (scores, lengths) in zip(snapshots, before):
    log.load(episode_data.EpisodeState.from_arrays(arrays))
    assert finish() == {
      row: (logs.float32_sum([scores[row], reward[row]]), lengths[row] + 1) for row in range(4)
    }
    # The scores of the next episodes begin at zero.
    assert log.state.score.tolist() == [0] * 4
    assert finish() == {row: (float(reward[row]), 1) for row in range(4)}


def _log_after_two_steps():
  log = action_log.ActionLog(logs.RUN_SEED, 4)
  log.begin()
  for time in range(2):
    log.record(np.full((4, 1), time), _TRUE, np.ones(4, np.float32), ~_TRUE)
  return log


def test_next_episode_begins_with_the_given_seed():
  log = _log_after_two_steps()
  log.begin_next(2, 99)
  state = log.state
  assert state.episode.tolist() == [0, 0, 1, 0]
  assert state.seed[2] == 99
  assert state.length.tolist() == [2, 2, 0, 2]
  assert state.score.tolist() == [2, 2, 0, 2]
  assert log.next_seed(2) == episode_data.episode_seed(logs.RUN_SEED, 2, 2)


def test_next_episode_returns_the_seed_of_the_previous_one():
  log = _log_after_two_steps()
  log.record(np.zeros((4, 1)), _TRUE, np.ones(4, np.float32), _TRUE)
  assert log.begin_next(1) == episode_data.episode_seed(logs.RUN_SEED, 1, 1)
  assert log.state.episode.tolist() == [1, 2, 1, 1]
  assert log.state.seed[1] == episode_data.episode_seed(logs.RUN_SEED, 1, 2)


def test_next_episodes_of_all_environments_have_their_default_seeds():
  log = _log_after_two_steps()
  for index in range(4):
    log.begin_next(index)
  state = log.state
  assert state.seed.tolist() == [
    episode_data.episode_seed(logs.RUN_SEED, row, 1) for row in range(4)
  ]
  assert state.episode.tolist() == [1] * 4
  assert len(state.actions) == 0
  assert state.length.tolist() == [0] * 4 and state.score.tolist() == [0] * 4
