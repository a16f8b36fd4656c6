"""Running episodes can be continued from their seeds and actions."""

import functools

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import action_log, episode_data, failure_budget
from tests import toy
from tests.environments import faulty_envs, logs, rollouts


def test_seeds_equal_those_of_spawned_seed_sequences():
  for run_seed in (0, 5, 2**40):
    for index, branch in enumerate(np.random.SeedSequence(run_seed).spawn(3)):
      for episode, leaf in enumerate(branch.spawn(4)):
        expected = leaf.generate_state(1)[0] % 2**31
        assert episode_data.episode_seed(run_seed, index, episode) == expected


def test_seeds_equal_those_of_earlier_versions():
  # With other seeds, run folders of earlier versions could not be resumed.
  assert [
    episode_data.episode_seed(*key) for key in ((0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))
  ] == [1941048836, 1805848317, 1433790897, 876514893]


def test_seeds_differ_by_run_environment_and_episode():
  seeds = {
    episode_data.episode_seed(run, index, episode)
    for run in range(10)
    for index in range(10)
    for episode in range(10)
  }
  assert len(seeds) == 1000
  assert 0 <= min(seeds) and max(seeds) < 2**31
  assert all(type(seed) is int for seed in seeds)


@logs.pauses
def test_arrays_contain_the_complete_state(pause_probability):
  for moment in logs.play(pause_probability):
    state = moment.log.snapshot(moment.observ)
    arrays = state.arrays()
    assert set(arrays) == {"episode", "seed", "observ", "score", "length", "action"}
    lengths = [len(actions) for actions in moment.actions]
    assert len(arrays["action"]) == sum(lengths)  # No padding.
    assert arrays["length"].tolist() == lengths
    copy = episode_data.EpisodeState.from_arrays(arrays)
    for name in ("episode", "seed", "observ", "score", "length"):
      array = getattr(state, name)
      assert getattr(copy, name).dtype == array.dtype
      np.testing.assert_array_equal(getattr(copy, name), array)
    assert [copy.episode_actions(row).tolist() for row in range(4)] == moment.actions
    again = copy.arrays()
    for name, array in arrays.items():
      np.testing.assert_array_equal(array, again[name])


@pytest.mark.parametrize("shape, dtype", [((), np.int64), ((2, 3), np.float32)])
def test_arrays_keep_shape_and_type_of_actions(shape, dtype):
  log = action_log.ActionLog(0, 3)
  log.begin()
  actions = [
    np.arange(3 * np.prod(shape, dtype=int)).reshape((3, *shape)).astype(dtype) + 10 * time
    for time in range(4)
  ]
  for time, action in enumerate(actions):
    log.record(
      action, np.array([True] * 3), np.zeros(3, np.float32), np.array([time == 1, False, False])
    )
  state = episode_data.EpisodeState.from_arrays(log.snapshot(np.zeros(3, np.float32)).arrays())
  assert state.actions[0].dtype == dtype
  np.testing.assert_array_equal(state.episode_actions(0), [action[0] for action in actions[2:]])
  np.testing.assert_array_equal(state.episode_actions(2), [action[2] for action in actions])


def test_arrays_with_unknown_names_or_wrong_lengths_are_refused():
  *_, moment = logs.play()
  arrays = moment.log.snapshot(moment.observ).arrays()
  with pytest.raises(ValueError, match="Unknown arrays .*: extra"):
    episode_data.EpisodeState.from_arrays({**arrays, "extra": np.zeros(1)})
  for length in (arrays["length"] + 1, arrays["length"] - 1000):
    with pytest.raises(ValueError, match="number of actions differs"):
      episode_data.EpisodeState.from_arrays({**arrays, "length": length})


def test_every_episode_has_its_own_seed(mode):
  expected = np.array(
    [
      [episode_data.episode_seed(7, index, episode) % 1000 for index in range(3)]
      for episode in range(4)
    ]
  )
  with batch_env.BatchEnv([functools.partial(toy.Counter, 1)] * 3, mode, seed=7) as batch:
    seen = [batch.reset()] + [batch.step(np.zeros((3, 1))).observ for _ in range(3)]
    state = batch.snapshot()
  assert [row[:, 0].tolist() for row in seen] == expected.tolist()
  assert state.episode.tolist() == [3, 3, 3]
  assert (state.seed % 1000 == expected[3]).all()


@pytest.mark.parametrize("sequence", [list, tuple, np.array])
def test_given_seeds_apply_to_the_first_episodes(mode, sequence):
  later = [episode_data.episode_seed(7, index, 1) % 1000 for index in range(2)]
  with batch_env.BatchEnv([functools.partial(toy.Counter, 1)] * 2, mode, seed=7) as batch:
    assert batch.reset(sequence([11, 22]))[:, 0].tolist() == [11, 22]
    assert batch.snapshot().seed.tolist() == [11, 22]
    assert batch.step(np.zeros((2, 1))).observ[:, 0].tolist() == later


def test_wrong_number_of_seeds_is_refused(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    with pytest.raises(ValueError, match="2 elements.*Received: 3"):
      batch.reset([1, 2, 3])


def test_reset_begins_the_first_episodes_again(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["hopper"], mode) as batch:
    actions = rollouts.draw_actions(batch.action_space, 5, 40)
    first = batch.reset()
    steps = rollouts.roll(batch, actions)
    assert batch.snapshot().episode.any()
    assert batch.reset().tobytes() == first.tobytes()
    assert not batch.snapshot().episode.any()
    rollouts.assert_same_bits(steps, rollouts.roll(batch, actions))


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
  "direction", ["to_processes", pytest.param("to_serial", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("constructor", rollouts.SIMULATED, ids=str)
def test_restored_simulation_equals_uninterrupted_one(constructor, direction, pool):
  before, after = (None, pool) if direction == "to_processes" else (pool, None)
  with batch_env.BatchEnv([constructor] * 3, before, seed=2) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 3, 200)
    rollouts.roll(batch, actions[:100])
    state = batch.snapshot()
    assert state.episode.min() >= 1, "No episode has ended."
    assert any(len(state.episode_actions(index)) for index in range(3))
    uninterrupted = rollouts.roll(batch, actions[100:])
  arrays = state.arrays()
  assert not any(array.dtype.hasobject for array in arrays.values())
  state = episode_data.EpisodeState.from_arrays(arrays)
  with batch_env.BatchEnv([constructor] * 3, after, seed=2) as batch:
    assert batch.restore(state)
    rollouts.assert_same_bits(uninterrupted, rollouts.roll(batch, actions[100:]))


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_restored_batch_equals_uninterrupted_one(name, mode):
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode, seed=2) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, 60)
    rollouts.roll(batch, actions[:31])
    state = episode_data.EpisodeState.from_arrays(batch.snapshot().arrays())
    uninterrupted = rollouts.roll(batch, actions[31:])
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode, seed=2) as batch:
    batch.restore(state)
    rollouts.assert_same_bits(uninterrupted, rollouts.roll(batch, actions[31:]))


def test_snapshot_before_the_first_step_can_be_restored(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["hopper"], mode) as batch:
    batch.reset([5, 6, 7, 8, 9])
    state = episode_data.EpisodeState.from_arrays(batch.snapshot().arrays())
    actions = rollouts.draw_actions(batch.action_space, 5, 30)
    steps = rollouts.roll(batch, actions)
    batch.restore(state)
    rollouts.assert_same_bits(steps, rollouts.roll(batch, actions))


def test_snapshot_can_be_restored_repeatedly(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    state = batch.snapshot()
    text = repr(state)
    for _ in range(3):
      batch.restore(state)
      steps = [batch.step(np.zeros((2, 1))) for _ in range(5)]
      assert steps[0].next_observ[:, 1].tolist() == [2, 2]
      assert repr(state) == text


def test_later_steps_do_not_change_a_snapshot(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    action = np.array([[1], [2]], np.float32)
    batch.step(action)
    action[:] = 9  # The log must have copied the action.
    state = batch.snapshot()
    text = repr(state)
    for _ in range(7):
      batch.step(np.zeros((2, 1)))
  assert repr(state) == text
  assert state.episode_actions(1).tolist() == [[2]]


def _differs_later(tmp_path, part):
  return functools.partial(faulty_envs.DiffersLater, str(tmp_path / "changed"), part)


@pytest.mark.parametrize(
  "part, message", [("observation", "another observation"), ("reward", "another sum of rewards")]
)
def test_episode_begins_anew_if_one_bit_of_its_replay_differs(part, message, mode, tmp_path):
  constructors = [functools.partial(toy.Counter, 50), _differs_later(tmp_path, part)]
  with batch_env.BatchEnv(constructors, mode, seed=7) as batch:
    batch.reset()
    for _ in range(3):
      batch.step(np.zeros((2, 1)))
    before = batch.snapshot()
    assert batch.restore(before)
    (tmp_path / "changed").touch()
    assert not batch.restore(before)
    after = batch.snapshot()
    assert after.episode.tolist() == [0, 1]
    assert after.length.tolist() == [3, 0] and after.score.tolist() == [6, 0]
    assert after.seed.tolist() == [before.seed[0], episode_data.episode_seed(7, 1, 1)]
    (failure,) = batch.failure_budget.drain()
    assert (
      failure.summary.startswith("New episodes begin in 1 of 2 environments (")
      and message in failure.text
    )
    ((index, seed, action),) = failure.episodes
    assert (index, seed, len(action)) == (1, before.seed[1], 3)
    step = batch.step(np.zeros((2, 1)))
    assert step.next_observ[:, 1].astype(int).tolist() == [4, 1] and step.valid.all()


def test_episode_begins_anew_if_its_replay_fails(tmp_path):
  constructors = [_differs_later(tmp_path, "error"), functools.partial(toy.Counter, 50)]
  budget = failure_budget.FailureBudget(1)
  with batch_env.BatchEnv(constructors, failure_budget=budget) as batch:
    batch.reset()
    for _ in range(3):
      batch.step(np.zeros((2, 1)))
    (tmp_path / "changed").touch()
    assert not batch.restore(batch.snapshot())
    assert batch.snapshot().episode.tolist() == [1, 0]
    (failure,) = budget.drain()
    assert "failed in step() of a replay" in failure.text and "fails since today" in failure.text
    assert batch.step(np.zeros((2, 1))).next_observ[:, 1].tolist() == [1, 4]


def test_restore_with_another_number_of_environments_is_refused(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    state = batch.snapshot()
  with batch_env.BatchEnv([toy.Counter] * 3, mode) as batch:
    with pytest.raises(ValueError, match="2 environments.* has 3"):
      batch.restore(state)
