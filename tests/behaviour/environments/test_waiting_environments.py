"""Environments that wait are left alone, and nothing of their story changes."""

import functools

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.making import action_scaling
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts


def _uneven(most=4):
  return functools.partial(toy.Uneven, most)


def _step(batch, active=None):
  """Step with actions of zero; `active` as ones and zeros."""
  active = None if active is None else np.array(active, bool)
  return batch.step(np.zeros((len(batch), 1)), active)


def _begin(env, index, episode):
  return env.reset(seed=episodes.episode_seed(2, index, episode))[0]


@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_each_environment_plays_as_if_it_were_alone(name):
  constructors = rollouts.BATCHES[name]
  with batch_env.BatchEnv(constructors, seed=2) as batch:
    first = batch.reset()
    convert = action_scaling.action_converter(batch.action_space)
    actions = rollouts.draw_actions(batch.action_space, 5, 60)
    steps = [step for step, _ in rollouts.roll_with_pauses(batch, actions)]
    running = batch.snapshot()
  for index, constructor in enumerate(constructors):
    env, episode = constructor(), 0
    observ = _begin(env, index, episode)
    assert first[index].tobytes() == np.array(observ, first.dtype).tobytes()
    for step, action in zip(steps, actions):
      next_observ, reward, ended = observ, 0, [False, False]
      if step.valid[index]:
        next_observ, reward, *ended, _ = env.step(convert(action)[index])
        observ = next_observ
      if any(ended):
        episode += 1
        observ = _begin(env, index, episode)
      for field, expected in (
          (step.observ, observ), (step.next_observ, next_observ),
          (step.reward, reward), (step.terminated, ended[0]),
          (step.truncated, ended[1])):
        assert field[index].tobytes() == np.array(
            expected, field.dtype).tobytes()
    env.close()
    assert running.episode[index] == episode


@pytest.mark.parametrize("name", ["toy", "uneven", "cartpole", "hopper"])
def test_any_number_of_processes_equals_serial(name, pools):
  def play(workers):
    with batch_env.BatchEnv(rollouts.BATCHES[name], workers) as batch:
      batch.reset()
      actions = rollouts.draw_actions(batch.action_space, 5, 60)
      return rollouts.roll_with_pauses(batch, actions)
  serial = play(None)
  assert any(ended for _, ended in serial), "No episode ended."
  for workers in pools:
    rollouts.assert_same_bits(serial, play(workers))


def test_who_waits_is_not_stepped(mode):
  with batch_env.BatchEnv([_uneven()] * 5, mode) as batch:
    batch.reset()
    steps = rollouts.roll_with_pauses(batch, np.zeros((40, 5, 1)))
    taken = np.sum([step.valid for step, _ in steps], 0)
    assert batch.get("taken") == taken.tolist()
    assert 5 < min(taken) and max(taken) < 40
    assert len(batch.finished) == batch.snapshot().episode.sum()


def test_rows_of_those_who_wait(mode):
  # Episodes of one and two steps; the first one ends at once, and waits.
  constructors = [functools.partial(toy.Counter, length) for length in (1, 2)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    before = _step(batch)
    assert before.reward.tolist() == [1, 1] and before.terminated[0]
    step = _step(batch, [0, 1])
    assert step.observ[0].tobytes() == before.observ[0].tobytes()
    assert step.next_observ[0].tobytes() == before.observ[0].tobytes()
    assert step.reward.tolist() == [0, 2]
    assert step.terminated.tolist() == [False, True]
    assert step.truncated.tolist() == [False, False]
    assert step.valid.tolist() == [False, True]
    assert [episode.score for episode in batch.finished] == [1, 3]
    # By default, nobody waits.
    assert _step(batch).valid.tolist() == [True, True]


def test_truncation_is_not_told_again(mode):
  constructors = [functools.partial(toy.Counter, 1, True)] * 2
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    assert _step(batch).truncated.tolist() == [True, True]
    assert _step(batch, [1, 0]).truncated.tolist() == [True, False]


def test_all_may_wait(mode):
  with batch_env.BatchEnv([_uneven()] * 2, mode) as batch:
    first = batch.reset()
    step = _step(batch, [0, 0])
    assert step.observ.tobytes() == first.tobytes()
    assert not step.valid.any() and not batch.finished
    assert batch.get("taken") == [0, 0]
    assert len(batch.snapshot().actions) == 0


def test_nobody_waits_in_the_middle_of_an_episode(mode):
  with batch_env.BatchEnv([functools.partial(toy.Counter, 3)] * 2,
                          mode) as batch:
    batch.reset()
    _step(batch, [1, 0])
    for active in ([0, 1], [0, 0]):
      with pytest.raises(ValueError, match="can't wait in the middle"):
        _step(batch, active)
    # Nothing has happened, and it can go on; after a replay likewise.
    batch.restore(batch.snapshot())
    with pytest.raises(ValueError, match="can't wait in the middle"):
      _step(batch, [0, 1])
    assert _step(batch).next_observ[:, 1].tolist() == [2, 1]


def test_error_names_who_was_stepped(mode):
  constructors = [toy.Counter, toy.Counter,
                  functools.partial(toy.Faulty, "raise"), toy.Counter]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    _step(batch, [0, 0, 1, 0])
    with pytest.raises(ValueError, match="faulty step") as caught:
      _step(batch, [0, 1, 1, 0])
  assert "Environment 2 ('Faulty'" in str(caught.value.__cause__)


def test_what_is_not_finite_is_blamed_on_who_was_stepped(mode):
  constructors = [toy.Counter, toy.Counter,
                  functools.partial(faulty_envs.Infinite, "reward", np.nan)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="not finite") as caught:
      _step(batch, [0, 1, 1])
  assert "Environment 2 ('Infinite'" in str(caught.value.__cause__)


@pytest.mark.parametrize("name", ["toy", "uneven", "hopper", "frozen_lake"])
def test_pauses_can_be_snapshots(name, mode):
  constructors = rollouts.BATCHES[name]
  with batch_env.BatchEnv(constructors, mode, seed=2) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, 40)
    rollouts.roll_with_pauses(batch, actions, chance=0.9)
    running = episodes.EpisodeState.from_arrays(batch.snapshot().arrays())
    lengths = [len(running.episode_actions(index)) for index in range(5)]
    assert 0 in lengths and max(lengths) > 0
    uninterrupted = rollouts.roll(batch, actions)
  with batch_env.BatchEnv(constructors, mode, seed=2) as batch:
    batch.restore(running)
    rollouts.assert_same_bits(uninterrupted, rollouts.roll(batch, actions))


@pytest.mark.parametrize("name", ["uneven", "frozen_lake", "cartpole"])
def test_the_end_of_all_episodes_can_be_a_snapshot(name, mode):
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode, seed=2) as batch:
    batch.reset()
    active = np.ones(5, bool)
    actions = rollouts.draw_actions(batch.action_space, 5, 200)
    for action in actions:
      step = batch.step(action, active)
      active &= ~(step.terminated | step.truncated)
      if not active.any():
        break
    snapshot = batch.snapshot()
    # No actions are running at all.
    assert snapshot.episode.tolist() == [1] * 5 and not len(snapshot.actions)
    running = episodes.EpisodeState.from_arrays(snapshot.arrays())
    uninterrupted = rollouts.roll_with_pauses(batch, actions[:30])
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode, seed=2) as batch:
    batch.restore(running)
    again = episodes.EpisodeState.from_arrays(batch.snapshot().arrays())
    assert again.observ.tobytes() == snapshot.observ.tobytes()
    assert again.seed.tolist() == snapshot.seed.tolist()
    rollouts.assert_same_bits(
        uninterrupted, rollouts.roll_with_pauses(batch, actions[:30]))


def test_what_was_played_while_others_wait_is_forgotten():
  # The first one waits all the time; the second one plays on and on.
  constructors = [functools.partial(toy.Counter, length) for length in (3, 7)]
  with batch_env.BatchEnv(constructors) as batch:
    batch.reset()
    kept = []
    for _ in range(70):
      _step(batch, [0, 1])
      kept.append(len(batch.snapshot().actions))
    assert kept == [1, 2, 3, 4, 5, 6, 0] * 10
    assert batch.snapshot().episode.tolist() == [0, 10]
    # Then it is their turn to wait.
    for length in (1, 2, 0):
      _step(batch, [1, 0])
      assert len(batch.snapshot().actions) == length
