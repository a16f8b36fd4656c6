"""Inactive environments wait, and waiting does not change episodes."""

import functools

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.environments.making import action_scaling
from tests import toy
from tests.environments import faulty_envs, rollouts


def _uneven(max_length=4):
  return functools.partial(toy.Uneven, max_length)


def _step(batch, active=None):
  """Steps with actions of zero; `active` is a list of zeros and ones."""
  active = None if active is None else np.array(active, bool)
  return batch.step(np.zeros((len(batch), 1)), active)


def _begin(env, index, episode):
  return env.reset(seed=episode_data.episode_seed(2, index, episode))[0]


@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_results_with_pauses_equal_those_of_separate_environments(name):
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
        (step.observ, observ),
        (step.next_observ, next_observ),
        (step.reward, reward),
        (step.terminated, ended[0]),
        (step.truncated, ended[1]),
      ):
        assert field[index].tobytes() == np.array(expected, field.dtype).tobytes()
    env.close()
    assert running.episode[index] == episode


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
  "name", ["toy", "uneven", "cartpole", pytest.param("hopper", marks=pytest.mark.slow)]
)
def test_results_with_pauses_do_not_depend_on_the_number_of_processes(name, pools):
  def play(workers):
    with batch_env.BatchEnv(rollouts.BATCHES[name], workers) as batch:
      batch.reset()
      actions = rollouts.draw_actions(batch.action_space, 5, 60)
      return rollouts.roll_with_pauses(batch, actions)

  serial = play(None)
  assert any(finished for _, finished in serial), "No episode ended."
  for workers in pools:
    rollouts.assert_same_bits(serial, play(workers))


def test_waiting_environments_are_not_stepped(mode):
  with batch_env.BatchEnv([_uneven()] * 5, mode) as batch:
    batch.reset()
    steps = rollouts.roll_with_pauses(batch, np.zeros((40, 5, 1)))
    num_steps = np.sum([step.valid for step, _ in steps], 0)
    assert batch.get("taken") == num_steps.tolist()
    assert 5 < min(num_steps) and max(num_steps) < 40
    num_episodes = sum(len(episodes) for _, episodes in steps)
    assert num_episodes == batch.snapshot().episode.sum()


def test_rows_of_waiting_environments_keep_the_observation(mode):
  # Environment 0 ends its episode in the first step and waits.
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
    assert [episode.score for episode in batch.take_finished()] == [1, 3]
    assert _step(batch).valid.tolist() == [True, True]


def test_waiting_environment_does_not_report_its_truncation_again(mode):
  constructors = [functools.partial(toy.Counter, 1, True)] * 2
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    assert _step(batch).truncated.tolist() == [True, True]
    assert _step(batch, [1, 0]).truncated.tolist() == [True, False]


def test_all_environments_may_wait(mode):
  with batch_env.BatchEnv([_uneven()] * 2, mode) as batch:
    first = batch.reset()
    step = _step(batch, [0, 0])
    assert step.observ.tobytes() == first.tobytes()
    assert not step.valid.any() and not batch.take_finished()
    assert batch.get("taken") == [0, 0]
    assert len(batch.snapshot().actions) == 0


def test_waiting_within_an_episode_is_an_error(mode):
  with batch_env.BatchEnv([functools.partial(toy.Counter, 3)] * 2, mode) as batch:
    batch.reset()
    _step(batch, [1, 0])
    for active in ([0, 1], [0, 0]):
      with pytest.raises(ValueError, match="cannot wait inside"):
        _step(batch, active)
    # The rejected steps have not changed the environments. After a replay,
    # waiting is still an error.
    batch.restore(batch.snapshot())
    with pytest.raises(ValueError, match="cannot wait inside"):
      _step(batch, [0, 1])
    assert _step(batch).next_observ[:, 1].tolist() == [2, 1]


def test_error_names_the_active_environment_that_failed(mode):
  constructors = [toy.Counter, toy.Counter, functools.partial(toy.Faulty, "raise"), toy.Counter]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    _step(batch, [0, 0, 1, 0])
    with pytest.raises(ValueError, match="faulty step") as caught:
      _step(batch, [0, 1, 1, 0])
  assert "Environment 2 ('Faulty'" in str(caught.value.__cause__)


def test_error_names_the_active_environment_that_returned_nan(mode):
  constructors = [
    toy.Counter,
    toy.Counter,
    functools.partial(faulty_envs.Infinite, "reward", np.nan),
  ]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="not finite") as caught:
      _step(batch, [0, 1, 1])
  assert "Environment 2 ('Infinite'" in str(caught.value.__cause__)


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("name", ["toy", "uneven", "hopper", "frozen_lake"])
def test_restored_batch_equals_uninterrupted_batch_with_pauses(name, mode):
  constructors = rollouts.BATCHES[name]
  with batch_env.BatchEnv(constructors, mode, seed=2) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, 40)
    rollouts.roll_with_pauses(batch, actions, probability=0.9)
    running = episode_data.EpisodeState.from_arrays(batch.snapshot().arrays())
    lengths = [len(running.episode_actions(index)) for index in range(5)]
    assert 0 in lengths and max(lengths) > 0
    uninterrupted = rollouts.roll(batch, actions)
  with batch_env.BatchEnv(constructors, mode, seed=2) as batch:
    batch.restore(running)
    rollouts.assert_same_bits(uninterrupted, rollouts.roll(batch, actions))


@pytest.mark.parametrize("name", ["uneven", "frozen_lake", "cartpole"])
def test_snapshot_between_episodes_can_be_restored(name, mode):
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
    assert snapshot.episode.tolist() == [1] * 5 and not len(snapshot.actions)
    running = episode_data.EpisodeState.from_arrays(snapshot.arrays())
    uninterrupted = rollouts.roll_with_pauses(batch, actions[:30])
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode, seed=2) as batch:
    batch.restore(running)
    again = episode_data.EpisodeState.from_arrays(batch.snapshot().arrays())
    assert again.observ.tobytes() == snapshot.observ.tobytes()
    assert again.seed.tolist() == snapshot.seed.tolist()
    rollouts.assert_same_bits(uninterrupted, rollouts.roll_with_pauses(batch, actions[:30]))


def test_log_drops_finished_episodes_while_other_environments_wait():
  # Environment 0 waits while environment 1 plays ten episodes.
  constructors = [functools.partial(toy.Counter, length) for length in (3, 7)]
  with batch_env.BatchEnv(constructors) as batch:
    batch.reset()
    lengths = []
    for _ in range(70):
      _step(batch, [0, 1])
      lengths.append(len(batch.snapshot().actions))
    assert lengths == [1, 2, 3, 4, 5, 6, 0] * 10
    assert batch.snapshot().episode.tolist() == [0, 10]
    # Now environment 1 waits.
    for length in (1, 2, 0):
      _step(batch, [1, 0])
      assert len(batch.snapshot().actions) == length
