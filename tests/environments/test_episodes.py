"""Seeds and actions are all it takes to continue an episode."""

import functools
from typing import NamedTuple

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments import episodes
from agents.environments import group as group_lib
from tests import toy
from tests.environments import odd
from tests.environments import rollouts


def test_seeds_are_those_of_a_tree_of_seed_sequences():
  for run_seed in (0, 5, 2 ** 40):
    for index, branch in enumerate(np.random.SeedSequence(run_seed).spawn(3)):
      for episode, leaf in enumerate(branch.spawn(4)):
        expected = leaf.generate_state(1)[0] % 2 ** 31
        assert episodes.episode_seed(run_seed, index, episode) == expected


def test_seeds_stay_what_they_were():
  # Runs of today are resumed by the code of tomorrow.
  assert [episodes.episode_seed(*key) for key in (
      (0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))] == [
          1941048836, 1805848317, 1433790897, 876514893]


def test_seeds_differ_by_run_environment_and_episode():
  seeds = {episodes.episode_seed(run, index, episode)
           for run in range(10) for index in range(10) for episode in range(10)}
  assert len(seeds) == 1000
  assert 0 <= min(seeds) and max(seeds) < 2 ** 31
  assert all(type(seed) is int for seed in seeds)


_pauses = pytest.mark.parametrize("chance", [0.0, 0.6], ids=["busy", "pauses"])


class _Logged(NamedTuple):
  """A log after some steps, and all there was to keep, row by row."""

  log: episodes.EpisodeLog
  observ: np.ndarray  # [B, 1], that the log was given.
  actions: list[list[list[float]]]  # Of the running episode.
  rewards: list[list[np.float32]]  # Likewise.
  episode: list[int]
  ended: dict[int, episodes.Episode]  # What the last step should have told.
  told: dict[int, episodes.Episode]  # And did.

  @property
  def scores(self):
    return [_sum(rewards) for rewards in self.rewards]


def _sum(rewards):
  """Add numbers up one after the other, in float32."""
  total = np.float32(0)
  for reward in rewards:
    total = np.float32(total + reward)
  return float(total)


def _play_log(chance=0.0, steps=60, batch=4, seed=0):
  """Log episodes that end by chance; yield the log and all there was to keep.

  Actions are 100 * row + time, observations -action. Rows wait with a chance,
  wherever they can. Every other step is logged in two parts.
  """
  random = np.random.default_rng(seed)
  observ = np.zeros((batch, 1), np.float32)
  log = episodes.EpisodeLog(7, batch)
  log.begin()
  played = _Logged(log, observ, [[] for _ in range(batch)],
                   [[] for _ in range(batch)], [0] * batch, {}, {})
  yield played
  for time in range(steps):
    action = (100 * np.arange(batch) + time)[:, None].astype(np.float32)
    begun = np.array([bool(actions) for actions in played.actions])
    active = begun | (random.random(batch) >= chance)
    ended = active & (random.random(batch) < 0.15)
    reward = np.where(active, random.normal(0, 9, batch), 0).astype(np.float32)
    observ[:] = -action
    told = {}
    bounds = (0, batch // 2, batch) if time % 2 else (0, batch)
    for first, end in zip(bounds, bounds[1:]):
      told.update(log.append(first, *(
          array[first:end] for array in (action, active, reward, ended))))
    played = played._replace(ended={}, told=told)
    for row in np.flatnonzero(active):
      played.actions[row].append([100.0 * row + time])
      played.rewards[row].append(reward[row])
      if ended[row]:
        played.ended[row] = episodes.Episode(
            episodes.episode_seed(7, int(row), played.episode[row]),
            np.array(played.actions[row], np.float32), played.scores[row], {})
        played.actions[row], played.rewards[row] = [], []
        played.episode[row] += 1
    yield played


@_pauses
def test_log_keeps_the_running_episodes(chance):
  for log, observ, actions, rewards, episode, *_ in _play_log(chance):
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
    assert running.score.tolist() == [_sum(row) for row in rewards]


@_pauses
def test_log_tells_of_episodes_that_end(chance):
  amounts, rounded = set(), False
  for played in _play_log(chance, steps=200):
    assert played.told == played.ended
    assert list(played.told) == sorted(played.told)
    amounts.add(len(played.told))
    for row in played.rewards:
      rounded |= _sum(row) != float(np.sum(row, dtype=np.float64))
  assert amounts >= {0, 1, 2}
  assert rounded, "Any precision gives these scores."


@_pauses
def test_log_forgets_what_began_before_every_running_episode(chance):
  for log, _, kept, *_ in _play_log(chance):
    assert len(log.running.actions) == max(len(actions) for actions in kept)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("active", [True, False])
def test_log_continues_from_a_snapshot_without_changing_it(active, ended):
  active = np.array([active] * 4)
  ended = np.array([ended] * 4) & active
  snapshots = [played.log.snapshot(played.observ.copy())
               for played in _play_log(0.6)]
  texts = [repr(running) for running in snapshots]
  assert len(set(texts)) == len(texts)
  log = episodes.EpisodeLog(7, 4)
  for running, text in zip(snapshots, texts):
    log.load(running)
    log.append(0, np.zeros((4, 1)), active, np.ones(4, np.float32), ended)
    assert repr(running) == text


@_pauses
def test_snapshots_stay_while_the_log_goes_on(chance):
  kept = []
  for log, observ, actions, *_ in _play_log(chance, steps=300):
    running = log.snapshot(observ)
    kept.append((running, [list(row) for row in actions]))
  for running, actions in kept:
    assert [running.episode_actions(row).tolist()
            for row in range(4)] == actions


@_pauses
def test_log_continues_the_scores_of_a_snapshot(chance):
  snapshots, before = [], []
  for played in _play_log(chance):
    snapshots.append(played.log.snapshot(played.observ).arrays())
    before.append((played.scores, list(map(len, played.rewards))))
  log = episodes.EpisodeLog(7, 4)
  yes, reward = np.array([True] * 4), np.arange(4, dtype=np.float32) / 3
  for arrays, (scores, lengths) in zip(snapshots, before):
    log.load(episodes.Running.from_arrays(arrays))
    def told():
      ended = log.append(0, np.zeros((4, 1)), yes, reward, yes)
      return {row: (episode.score, episode.length)
              for row, episode in ended.items()}
    assert told() == {
        row: (_sum([scores[row], reward[row]]), lengths[row] + 1)
        for row in range(4)}
    # The next ones begin at zero.
    assert log.running.score.tolist() == [0] * 4
    assert told() == {row: (float(reward[row]), 1) for row in range(4)}


@_pauses
def test_arrays_hold_everything(chance):
  for log, observ, kept, *_ in _play_log(chance):
    running = log.snapshot(observ)
    arrays = running.arrays()
    assert set(arrays) == {
        "episode", "seed", "observ", "score", "length", "action"}
    # No padding: as many actions as there were.
    assert len(arrays["action"]) == sum(len(actions) for actions in kept)
    assert arrays["length"].tolist() == [len(actions) for actions in kept]
    copy = episodes.Running.from_arrays(arrays)
    for name in ("episode", "seed", "observ", "score", "length"):
      array = getattr(running, name)
      assert getattr(copy, name).dtype == array.dtype
      np.testing.assert_array_equal(getattr(copy, name), array)
    assert [copy.episode_actions(row).tolist() for row in range(4)] == kept
    again = copy.arrays()
    for name, array in arrays.items():
      np.testing.assert_array_equal(array, again[name])


@pytest.mark.parametrize("shape, dtype", [
    ((), np.int64), ((2, 3), np.float32)])
def test_arrays_keep_shape_and_type_of_actions(shape, dtype):
  log = episodes.EpisodeLog(0, 3)
  log.begin()
  actions = [np.arange(3 * np.prod(shape, dtype=int)).reshape(
      (3, *shape)).astype(dtype) + 10 * time for time in range(4)]
  for time, action in enumerate(actions):
    log.append(0, action, np.array([True] * 3), np.zeros(3, np.float32),
               np.array([time == 1, False, False]))
  running = episodes.Running.from_arrays(
      log.snapshot(np.zeros(3, np.float32)).arrays())
  assert running.actions[0].dtype == dtype
  np.testing.assert_array_equal(
      running.episode_actions(0), [action[0] for action in actions[2:]])
  np.testing.assert_array_equal(
      running.episode_actions(2), [action[2] for action in actions])


def test_every_episode_has_its_own(mode):
  expected = np.array([[episodes.episode_seed(7, index, episode) % 1000
                        for index in range(3)] for episode in range(4)])
  with batch_env.BatchEnv(
      [functools.partial(toy.Counter, 1)] * 3, mode, seed=7) as batch:
    seen = [batch.reset()] + [
        batch.step(np.zeros((3, 1))).observ for _ in range(3)]
    running = batch.snapshot()
  assert [row[:, 0].tolist() for row in seen] == expected.tolist()
  assert running.episode.tolist() == [3, 3, 3]
  assert (running.seed % 1000 == expected[3]).all()


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_given_seeds_hold_for_the_first_episodes(mode, kind):
  later = [episodes.episode_seed(7, index, 1) % 1000 for index in range(2)]
  with batch_env.BatchEnv(
      [functools.partial(toy.Counter, 1)] * 2, mode, seed=7) as batch:
    assert batch.reset(kind([11, 22]))[:, 0].tolist() == [11, 22]
    assert batch.snapshot().seed.tolist() == [11, 22]
    assert batch.step(np.zeros((2, 1))).observ[:, 0].tolist() == later


def test_one_seed_for_each_environment(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    with pytest.raises(ValueError, match="2 numbers.*Received: 3"):
      batch.reset([1, 2, 3])


def test_reset_begins_again(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["hopper"], mode) as batch:
    actions = rollouts.draw_actions(batch.action_space, 5, 40)
    first = batch.reset()
    steps = rollouts.roll(batch, actions)
    assert batch.snapshot().episode.any()
    assert batch.reset().tobytes() == first.tobytes()
    assert not batch.snapshot().episode.any()
    rollouts.assert_same_bits(steps, rollouts.roll(batch, actions))


@pytest.mark.parametrize("direction", ["to_processes", "to_serial"])
@pytest.mark.parametrize("constructor", rollouts.SIMULATED, ids=str)
def test_simulation_goes_on_bit_for_bit(constructor, direction, pool):
  here, there = (
      (None, pool) if direction == "to_processes" else (pool, None))
  with batch_env.BatchEnv([constructor] * 3, here, seed=2) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 3, 200)
    rollouts.roll(batch, actions[:100])
    running = batch.snapshot()
    assert running.episode.min() >= 1, "No episode has ended."
    assert any(len(running.episode_actions(index)) for index in range(3))
    uninterrupted = rollouts.roll(batch, actions[100:])
  arrays = running.arrays()
  assert not any(array.dtype.hasobject for array in arrays.values())
  running = episodes.Running.from_arrays(arrays)
  with batch_env.BatchEnv([constructor] * 3, there, seed=2) as batch:
    batch.restore(running)
    rollouts.assert_same_bits(
        uninterrupted, rollouts.roll(batch, actions[100:]))


@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_everything_goes_on_bit_for_bit(name, mode):
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode, seed=2) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, 60)
    rollouts.roll(batch, actions[:31])
    running = episodes.Running.from_arrays(batch.snapshot().arrays())
    uninterrupted = rollouts.roll(batch, actions[31:])
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode, seed=2) as batch:
    batch.restore(running)
    rollouts.assert_same_bits(
        uninterrupted, rollouts.roll(batch, actions[31:]))


def test_at_the_very_beginning(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["hopper"], mode) as batch:
    batch.reset([5, 6, 7, 8, 9])
    running = episodes.Running.from_arrays(batch.snapshot().arrays())
    actions = rollouts.draw_actions(batch.action_space, 5, 30)
    steps = rollouts.roll(batch, actions)
    batch.restore(running)
    rollouts.assert_same_bits(steps, rollouts.roll(batch, actions))


def test_a_snapshot_can_be_restored_again_and_again(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    running = batch.snapshot()
    text = repr(running)
    for _ in range(3):
      batch.restore(running)
      seconds = [batch.step(np.zeros((2, 1))) for _ in range(5)]
      assert seconds[0].next_observ[:, 1].tolist() == [2, 2]
      assert repr(running) == text


def test_a_snapshot_stays_while_the_batch_goes_on(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    action = np.array([[1], [2]], np.float32)
    batch.step(action)
    action[:] = 9  # What was sent is what is kept.
    running = batch.snapshot()
    text = repr(running)
    for _ in range(7):
      batch.step(np.zeros((2, 1)))
  assert repr(running) == text
  assert running.episode_actions(1).tolist() == [[2]]


def test_needs_a_deterministic_environment(mode):
  with batch_env.BatchEnv([toy.Counter, odd.Forgetful], mode) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(
        group_lib.ReplayError, match="Environment 1 .*not deterministic"):
      batch.restore(batch.snapshot())


def test_needs_as_many_environments(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    running = batch.snapshot()
  with batch_env.BatchEnv([toy.Counter] * 3, mode) as batch:
    with pytest.raises(ValueError, match="2 environments.* has 3"):
      batch.restore(running)
