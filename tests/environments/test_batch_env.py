"""BatchEnv returns the same results with any number of workers or none."""

import functools
import gc
import os

import gymnasium
import numpy as np
import pytest

from agents import spaces
from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.data import episode_data
from agents.environments.workers import pool as pool_lib
from tests import echo, toy
from tests.environments import faulty_envs, rollouts


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_results_do_not_depend_on_the_number_of_workers(name, pools):
  first, serial = rollouts.play(rollouts.BATCHES[name], None)
  assert any(finished for _, finished in serial), "No episode ended."
  for workers in pools:
    other_first, parallel = rollouts.play(rollouts.BATCHES[name], workers)
    assert first.tobytes() == other_first.tobytes()
    rollouts.assert_same_bits(serial, parallel)


def test_results_are_the_same_with_fewer_environments_than_workers(pools):
  two = rollouts.BATCHES["toy"][:2]
  serial = rollouts.play(two, None)[1]
  rollouts.assert_same_bits(serial, rollouts.play(two, pools[2])[1])


@pytest.mark.parametrize("name", ["cartpole", "hopper"])
def test_results_depend_only_on_the_seed(name, mode):
  first, steps = rollouts.play(rollouts.BATCHES[name], mode, seed=3)
  same_first, same_steps = rollouts.play(rollouts.BATCHES[name], mode, seed=3)
  other_first, _ = rollouts.play(rollouts.BATCHES[name], mode, seed=4)
  assert first.tobytes() == same_first.tobytes()
  rollouts.assert_same_bits(steps, same_steps)
  assert not (first == other_first).all(-1).any()


def test_environments_of_a_batch_have_different_seeds():
  first, _ = rollouts.play(rollouts.BATCHES["hopper"], None, num_steps=0)
  assert len({row.tobytes() for row in first}) == len(first)


def test_batches_on_the_same_workers_are_independent(pool):
  expected = rollouts.play(rollouts.BATCHES["hopper"], pool, seed=1)[1]
  other_expected = rollouts.play(rollouts.BATCHES["cartpole"], pool, seed=2)[1]
  with (
    batch_env.BatchEnv(rollouts.BATCHES["hopper"], pool, 1) as batch,
    batch_env.BatchEnv(rollouts.BATCHES["cartpole"], pool, 2) as other,
  ):
    batch.reset()
    other.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, 60)
    other_actions = rollouts.draw_actions(other.action_space, 5, 60)
    steps, other_steps = [], []
    for action, other_action in zip(actions, other_actions):
      steps += rollouts.roll(batch, [action])
      other_steps += rollouts.roll(other, [other_action])
  rollouts.assert_same_bits(expected, steps)
  rollouts.assert_same_bits(other_expected, other_steps)


@pytest.mark.parametrize("truncates", [False, True])
def test_next_observation_is_the_successor_and_observation_the_reset(mode, truncates):
  constructors = [functools.partial(toy.Counter, length, truncates) for length in (2, 3)]
  # `Counter` observes the last three digits of its seed.
  seed = [
    [episode_data.episode_seed(5, index, episode) % 1000 for episode in range(3)]
    for index in range(2)
  ]
  with batch_env.BatchEnv(constructors, mode, seed=5) as batch:
    observ = batch.reset()
    assert observ.tolist() == [[seed[0][0], 0], [seed[1][0], 0]]
    one, two, three, four = (batch.step(np.zeros((2, 1))) for _ in range(4))
  assert one.next_observ.tolist() == [[seed[0][0], 1], [seed[1][0], 1]]
  assert one.observ.tolist() == one.next_observ.tolist()
  assert two.next_observ.tolist() == [[seed[0][0], 2], [seed[1][0], 2]]
  assert two.observ.tolist() == [[seed[0][1], 0], [seed[1][0], 2]]
  assert three.next_observ.tolist() == [[seed[0][1], 1], [seed[1][0], 3]]
  assert three.observ.tolist() == [[seed[0][1], 1], [seed[1][1], 0]]
  assert four.observ.tolist() == [[seed[0][2], 0], [seed[1][1], 1]]
  assert [x.reward.tolist() for x in (one, two, three, four)] == [[1, 1], [2, 2], [1, 3], [2, 1]]
  ends = [[False, False], [True, False], [False, True], [True, False]]
  never = [[False, False]] * 4
  assert [x.terminated.tolist() for x in (one, two, three, four)] == (never if truncates else ends)
  assert [x.truncated.tolist() for x in (one, two, three, four)] == (ends if truncates else never)
  assert one.valid.all() and four.valid.all()


def test_next_observation_is_correct_if_the_environment_reuses_its_array(mode):
  with batch_env.BatchEnv([faulty_envs.Reusing] * 2, mode) as batch:
    batch.reset()
    steps = [batch.step(np.zeros((2, 1))) for _ in range(3)]
  assert [step.next_observ[0, 1] for step in steps] == [1, 2, 3]
  assert [step.observ[0, 1] for step in steps] == [1, 2, 0]


def test_later_steps_do_not_change_results(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    first = batch.reset()
    before = first.copy()
    step = batch.step(np.zeros((2, 1)))
    text = repr(step)
    packed = batch.step_packed(np.zeros((2, 1)))
    data = packed.tobytes()
    batch.step(np.zeros((2, 1)))
    batch.reset([1, 2])
  assert (first == before).all()
  assert repr(step) == text
  assert packed.tobytes() == data


def test_fields_have_the_types_of_the_space(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["frozen_lake"], mode) as batch:
    assert batch.reset().dtype == np.int64
    step = batch.step(np.zeros(5, np.int64))
  for observ in (step.observ, step.next_observ):
    assert observ.shape == (5,) and observ.dtype == np.int64
  assert step.reward.dtype == np.float32
  assert step.terminated.dtype == step.valid.dtype == np.bool_


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_packed_step_and_final_observations_equal_the_fields_of_step(name, mode):
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode) as batch:
    actions = rollouts.draw_actions(batch.action_space, 5, 60)
    batch.reset()
    steps = [batch.step(action) for action in actions]
    batch.reset()
    packed = [batch.step_packed(action) for action in actions]
    final_observ = batch.take_final_observ()
  assert all(row.dtype == np.uint8 for row in packed)
  assert all(row.shape == (batch.step_layout.num_bytes,) for row in packed)
  rebuilt = []
  for row in packed:
    views = batch.step_layout.views(row)
    next_observ = views["observ"].copy()
    for index in np.flatnonzero(views["terminated"] | views["truncated"]):
      next_observ[index] = final_observ.pop(0)
    rebuilt.append((batch_env.StepResult(next_observ=next_observ, **views), []))
  assert final_observ == []
  rollouts.assert_same_bits([(step, []) for step in steps], rebuilt)


def test_actions_are_rescaled_to_the_space(mode):
  with batch_env.BatchEnv([toy.Counter] * 4, mode) as batch:
    batch.reset()
    batch.step(np.array([[-7], [-0.5], [1], [7]]))
    assert [x.tolist() for x in batch.get("last_action")] == [[-2], [-1], [2], [2]]


def test_wrong_action_shape_is_refused_before_the_step(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    for wrong in ((1,), (2,), (3, 1), (2, 2)):
      with pytest.raises(ValueError, match=r"must have shape \(2, 1\)"):
        batch.step(np.zeros(wrong))
    assert batch.step(np.zeros((2, 1))).reward.tolist() == [1, 1]


def test_wrong_shape_of_active_is_refused_before_the_step(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    for wrong in ((), (1,), (3,), (2, 1)):
      with pytest.raises(ValueError, match=r"`active` must have shape \(2,\)"):
        batch.step(np.zeros((2, 1)), np.ones(wrong, bool))
    assert batch.step(np.zeros((2, 1))).reward.tolist() == [1, 1]


def test_fractional_discrete_actions_are_refused(mode):
  constructor = functools.partial(gymnasium.make, "CartPole-v1")
  with batch_env.BatchEnv([constructor] * 2, mode) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="must be of int64, .*float64"):
      batch.step(np.array([0.9, 1.0]))
    with pytest.raises(ValueError, match="must be of int64, .*float64"):
      batch.rollout(lambda observ: np.array([0.9, 1.0]), 1)
    batch.step(np.array([0, 1], np.int8))


def test_step_before_reset_is_refused(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    with pytest.raises(RuntimeError, match=r"reset\(\)"):
      batch.step(np.zeros((2, 1)))


def test_step_seconds_measure_the_duration_of_steps(mode):
  with batch_env.BatchEnv([toy.Counter], mode) as batch:
    batch.reset()
    assert batch.step_seconds == 0
    batch.step(np.zeros((1, 1)))
    assert batch.step_seconds > 0


def test_busy_seconds_divide_the_work_evenly_over_workers(pool):
  # The second step of `Slow` takes half a second.
  for workers, minimum in ((None, 0.5), (pool, 0.25)):
    with batch_env.BatchEnv([toy.Counter, faulty_envs.Slow], workers) as batch:
      batch.reset()
      assert batch.busy_seconds == 0
      for _ in range(2):
        batch.step(np.zeros((2, 1)))
      assert batch.step_seconds >= 0.5
      assert minimum <= batch.busy_seconds < minimum + 0.2


def test_finished_episodes_contain_the_numbers_of_their_last_info(mode):
  constructors = [functools.partial(toy.Counter, length) for length in (2, 3, 9)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    for _ in range(4):
      batch.step(np.zeros((3, 1)))
    finished = batch.take_finished()
  # The reward part is 0.5 in the first step, 1.0 in the second, and so on.
  two = {"step": 2, "reward_part": 1.0, "reward_parts": {"reward_part": 1.5}}
  three = {"step": 3, "reward_part": 1.5, "reward_parts": {"reward_part": 3.0}}
  assert [(episode.score, episode.length, episode.info) for episode in finished] == [
    (3.0, 2, two),
    (6.0, 3, three),
    (3.0, 2, two),
  ]
  assert all(type(episode) is episode_data.Episode for episode in finished)


@pytest.mark.parametrize("action_repeat", [1, 4])
def test_reward_parts_add_up_to_the_score(action_repeat):
  constructor = rollouts.make_env("HalfCheetah-v5", max_length=20, action_repeat=action_repeat)
  steps = rollouts.play([constructor] * 2, None, num_steps=20)[1]
  score = sum(step.reward for step, _ in steps)
  for index, episode in enumerate(steps[-1][1]):
    parts = episode.info["reward_parts"]
    assert set(parts) == {"reward_forward", "reward_ctrl"}
    np.testing.assert_allclose(sum(parts.values()), score[index], rtol=1e-3)
  assert len(steps[-1][1]) == 2


def test_get_and_call_return_results_in_order(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["toy"], mode) as batch:
    assert batch.get("length") == [1, 2, 3, 4, 50]
    assert batch.call("add", 3) == [3] * 5
    assert batch.call("add", 3, second=4) == [7] * 5


def test_get_and_call_work_through_wrappers(mode):
  constructor = rollouts.make_env("tests.toy:Counter", max_length=2, frame_delta=True)
  with batch_env.BatchEnv([constructor] * 2, mode) as batch:
    assert batch.get("length") == [3, 3]
    assert batch.call("add", 1, 1) == [2, 2]


def test_unknown_name_is_an_error_that_names_the_environment(mode):
  with batch_env.BatchEnv([toy.Counter] * 3, mode) as batch:
    with pytest.raises(AttributeError, match="nothing") as caught:
      batch.get("nothing")
    assert "Environment 0" in str(caught.value.__cause__)
    with pytest.raises(AttributeError, match="nothing"):
      batch.call("nothing")
    with pytest.raises(TypeError):
      batch.call("add")
    assert batch.get("length") == [3, 3, 3]


def test_values_that_cannot_be_pickled_arrive_as_text(pool):
  with batch_env.BatchEnv([faulty_envs.ProcessInfo] * 3, pool) as batch:
    locks = batch.get("lock")
  assert len(locks) == 3
  assert all(isinstance(lock, str) and "lock" in lock for lock in locks)


def test_batch_has_the_number_and_spaces_of_its_environments(mode):
  with batch_env.BatchEnv([toy.Counter] * 3, mode) as batch:
    assert len(batch) == 3
    assert batch.observation_space == toy.Counter().observation_space
    assert batch.action_space == toy.Counter().action_space


def test_closed_batch_refuses_all_requests(mode):
  batch = batch_env.BatchEnv([toy.Counter] * 3, mode)
  batch.reset()
  snapshot = batch.snapshot()
  batch.close()
  batch.close()
  assert batch.is_closed
  for use in (
    batch.reset,
    lambda: batch.step(np.zeros((3, 1))),
    lambda: batch.get("length"),
    lambda: batch.call("add", 1),
    lambda: batch.set("length", [1, 2, 3]),
    batch.snapshot,
    lambda: batch.restore(snapshot),
  ):
    with pytest.raises(RuntimeError, match="closed"):
      use()


def test_close_closes_every_environment(mode, tmp_path):
  path = tmp_path / "log"
  constructors = [functools.partial(faulty_envs.LogsLifetime, path, name) for name in "abc"]
  batch = batch_env.BatchEnv(constructors, mode)
  assert rollouts.count_open(path) == {"a": 1, "b": 1, "c": 1}
  batch.close()
  assert rollouts.count_open(path) == {}


def test_close_closes_every_environment_even_if_one_raises(mode, tmp_path):
  path = tmp_path / "log"
  constructors = [
    functools.partial(faulty_envs.LogsLifetime, path, name, fault)
    for name, fault in (("a", ""), ("b", "close"), ("c", ""))
  ]
  batch = batch_env.BatchEnv(constructors, mode)
  with pytest.raises(ValueError, match="faulty close") as caught:
    batch.close()
  assert "Environment 1" in str(caught.value.__cause__)
  assert rollouts.count_open(path) == {}
  batch.close()


def test_system_exit_in_close_does_not_end_the_trainer(mode, tmp_path):
  constructors = [
    functools.partial(faulty_envs.LogsLifetime, tmp_path / "log", name, fault)
    for name, fault in (("a", ""), ("b", "exit"))
  ]
  batch = batch_env.BatchEnv(constructors, mode)
  with pytest.raises(base.EnvironmentFailure, match="SystemExit"):
    batch.close()


def test_failed_constructor_closes_environments_built_before(mode, tmp_path):
  path = tmp_path / "log"
  constructors = [
    functools.partial(faulty_envs.LogsLifetime, path, name, fault)
    for name, fault in (("a", ""), ("b", ""), ("c", ""), ("d", "constructor"))
  ]
  with pool_lib.WorkerPool(2) as workers:
    with pytest.raises(ValueError, match="faulty constructor"):
      batch_env.BatchEnv(constructors, workers if mode else None)
  assert rollouts.count_open(path) == {}


@pytest.mark.slow
def test_closed_batches_leave_no_descriptors_open(mode):
  gc.collect()
  before = len(os.listdir("/proc/self/fd"))
  for _ in range(3):
    rollouts.play(rollouts.BATCHES["toy"], mode, num_steps=5)
  gc.collect()
  assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("space", echo.SPACES)
def test_rollouts_without_a_policy_have_random_actions(space):
  make = functools.partial(echo.Echo, space)
  first, second, other = (
    batch_env.BatchEnv([make] * 50, seed=seed).rollout(None, 20) for seed in (1, 1, 2)
  )
  assert first.action.tobytes() == second.action.tobytes() != other.action.tobytes()
  for leaf, column in zip(
    spaces.leaves(echo.SPACES[space], True), spaces.columns(first.action), strict=True
  ):
    if leaf.dtype == np.float32:
      assert -1 <= column.min() < -0.9 and 0.9 < column.max() <= 1
      continue
    is_binary = isinstance(leaf.space, gymnasium.spaces.MultiBinary)
    sizes = 2 if is_binary else getattr(leaf.space, "nvec", getattr(leaf.space, "n", None))
    assert column.min() == 0
    highest = column.reshape(-1, *leaf.shape).max(0)
    np.testing.assert_array_equal(highest, np.broadcast_to(sizes, leaf.shape) - 1)
