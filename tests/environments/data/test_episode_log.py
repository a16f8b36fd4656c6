"""The log keeps all there is to know of episodes that are being played."""

import numpy as np
import pytest

from agents.environments.data import episode_log
from agents.environments.data import episodes
from tests.environments import logs


@logs.pauses
def test_log_keeps_the_running_episodes(chance):
  for log, observ, actions, rewards, episode, *_ in logs.play(chance):
    running = log.snapshot(observ)
    assert running.episode.tolist() == episode
    assert running.seed.tolist() == [
        episodes.episode_seed(7, row, number)
        for row, number in enumerate(episode)]
    assert running.observ.tolist() == observ.tolist()
    assert [running.episode_actions(row).tolist()
            for row in range(4)] == actions
    assert running.length.tolist() == [len(row) for row in actions]
    assert running.score.dtype == np.float32
    assert running.score.tolist() == [logs.added(row) for row in rewards]


@logs.pauses
def test_log_tells_of_episodes_that_end(chance):
  amounts, rounded = set(), False
  for played in logs.play(chance, steps=200):
    assert played.told == played.ended
    assert list(played.told) == sorted(played.told)
    amounts.add(len(played.told))
    for row in played.rewards:
      rounded |= logs.added(row) != float(np.sum(row, dtype=np.float64))
  assert amounts >= {0, 1, 2}
  assert rounded, "Any precision gives these scores."


@logs.pauses
def test_log_forgets_what_began_before_every_running_episode(chance):
  for log, _, kept, *_ in logs.play(chance):
    assert len(log.running.actions) == max(len(actions) for actions in kept)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("active", [True, False])
def test_log_continues_from_a_snapshot_without_changing_it(active, ended):
  active = np.array([active] * 4)
  ended = np.array([ended] * 4) & active
  snapshots = [played.log.snapshot(played.observ.copy())
               for played in logs.play(0.6)]
  texts = [repr(running) for running in snapshots]
  assert len(set(texts)) == len(texts)
  log = episode_log.EpisodeLog(7, 4)
  for running, text in zip(snapshots, texts):
    log.load(running)
    log.append(0, np.zeros((4, 1)), active, np.ones(4, np.float32), ended)
    assert repr(running) == text


@logs.pauses
def test_snapshots_stay_while_the_log_goes_on(chance):
  kept = []
  for log, observ, actions, *_ in logs.play(chance, steps=300):
    running = log.snapshot(observ)
    kept.append((running, [list(row) for row in actions]))
  for running, actions in kept:
    assert [running.episode_actions(row).tolist()
            for row in range(4)] == actions


@logs.pauses
def test_log_continues_the_scores_of_a_snapshot(chance):
  snapshots, before = [], []
  for played in logs.play(chance):
    snapshots.append(played.log.snapshot(played.observ).arrays())
    before.append((played.scores, list(map(len, played.rewards))))
  log = episode_log.EpisodeLog(7, 4)
  yes, reward = np.array([True] * 4), np.arange(4, dtype=np.float32) / 3
  for arrays, (scores, lengths) in zip(snapshots, before):
    log.load(episodes.EpisodeState.from_arrays(arrays))
    def told():
      ended = log.append(0, np.zeros((4, 1)), yes, reward, yes)
      return {row: (episode.score, episode.length)
              for row, episode in ended.items()}
    assert told() == {
        row: (logs.added([scores[row], reward[row]]), lengths[row] + 1)
        for row in range(4)}
    # The next ones begin at zero.
    assert log.running.score.tolist() == [0] * 4
    assert told() == {row: (float(reward[row]), 1) for row in range(4)}
