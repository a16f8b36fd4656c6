"""Batches behave the same wherever their environments are stepped."""

import functools
import gc
import os

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.data import episodes
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts


@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_any_number_of_processes_equals_serial(name, pools):
  first, serial = rollouts.play(rollouts.BATCHES[name], None)
  assert any(ended for _, ended in serial), "No episode ended."
  for workers in pools:
    first_there, there = rollouts.play(rollouts.BATCHES[name], workers)
    assert first.tobytes() == first_there.tobytes()
    rollouts.assert_same_bits(serial, there)


def test_fewer_environments_than_workers(pools):
  two = rollouts.BATCHES["toy"][:2]
  serial = rollouts.play(two, None)[1]
  rollouts.assert_same_bits(serial, rollouts.play(two, pools[2])[1])


@pytest.mark.parametrize("name", ["cartpole", "hopper"])
def test_seed_decides(name, mode):
  first, steps = rollouts.play(rollouts.BATCHES[name], mode, seed=3)
  same_first, same_steps = rollouts.play(rollouts.BATCHES[name], mode, seed=3)
  other_first, _ = rollouts.play(rollouts.BATCHES[name], mode, seed=4)
  assert first.tobytes() == same_first.tobytes()
  rollouts.assert_same_bits(steps, same_steps)
  assert not (first == other_first).all(-1).any()


def test_environments_of_a_batch_differ():
  first, _ = rollouts.play(rollouts.BATCHES["hopper"], None, steps=0)
  assert len({row.tobytes() for row in first}) == len(first)


def test_batches_on_the_same_workers_do_not_mix(pool):
  alone = rollouts.play(rollouts.BATCHES["hopper"], pool, seed=1)[1]
  other_alone = rollouts.play(rollouts.BATCHES["cartpole"], pool, seed=2)[1]
  with batch_env.BatchEnv(rollouts.BATCHES["hopper"], pool, 1) as batch, \
      batch_env.BatchEnv(rollouts.BATCHES["cartpole"], pool, 2) as other:
    batch.reset()
    other.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, 60)
    other_actions = rollouts.draw_actions(other.action_space, 5, 60)
    together, other_together = [], []
    for action, other_action in zip(actions, other_actions):
      together += rollouts.roll(batch, [action])
      other_together += rollouts.roll(other, [other_action])
  rollouts.assert_same_bits(alone, together)
  rollouts.assert_same_bits(other_alone, other_together)


@pytest.mark.parametrize("truncates", [False, True])
def test_next_observation_is_true_and_observation_is_reset(
    mode, truncates):
  constructors = [functools.partial(toy.Counter, length, truncates)
                  for length in (2, 3)]
  number = [[episodes.episode_seed(5, index, episode) % 1000
             for episode in range(3)] for index in range(2)]
  with batch_env.BatchEnv(constructors, mode, seed=5) as batch:
    observ = batch.reset()
    assert observ.tolist() == [[number[0][0], 0], [number[1][0], 0]]
    one, two, three, four = (batch.step(np.zeros((2, 1))) for _ in range(4))
  assert one.next_observ.tolist() == [[number[0][0], 1], [number[1][0], 1]]
  assert one.observ.tolist() == one.next_observ.tolist()
  assert two.next_observ.tolist() == [[number[0][0], 2], [number[1][0], 2]]
  assert two.observ.tolist() == [[number[0][1], 0], [number[1][0], 2]]
  assert three.next_observ.tolist() == [[number[0][1], 1], [number[1][0], 3]]
  assert three.observ.tolist() == [[number[0][1], 1], [number[1][1], 0]]
  assert four.observ.tolist() == [[number[0][2], 0], [number[1][1], 1]]
  assert [x.reward.tolist() for x in (one, two, three, four)] == [
      [1, 1], [2, 2], [1, 3], [2, 1]]
  ends = [[False, False], [True, False], [False, True], [True, False]]
  never = [[False, False]] * 4
  assert [x.terminated.tolist() for x in (one, two, three, four)] == (
      never if truncates else ends)
  assert [x.truncated.tolist() for x in (one, two, three, four)] == (
      ends if truncates else never)
  assert one.valid.all() and four.valid.all()


def test_next_observation_survives_a_reused_array(mode):
  with batch_env.BatchEnv([faulty_envs.Reusing] * 2, mode) as batch:
    batch.reset()
    steps = [batch.step(np.zeros((2, 1))) for _ in range(3)]
  assert [step.next_observ[0, 1] for step in steps] == [1, 2, 3]
  assert [step.observ[0, 1] for step in steps] == [1, 2, 0]


def test_results_do_not_change_afterwards(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    first = batch.reset()
    before = first.copy()
    step = batch.step(np.zeros((2, 1)))
    text = repr(step)
    batch.step(np.zeros((2, 1)))
    batch.reset([1, 2])
  assert (first == before).all()
  assert repr(step) == text


def test_types(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["frozen_lake"], mode) as batch:
    assert batch.reset().dtype == np.int64
    step = batch.step(np.zeros(5, np.int64))
  for observ in (step.observ, step.next_observ):
    assert observ.shape == (5,) and observ.dtype == np.int64
  assert step.reward.dtype == np.float32
  assert step.terminated.dtype == step.valid.dtype == np.bool_


@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_packed_step_holds_the_same(name, mode):
  with batch_env.BatchEnv(rollouts.BATCHES[name], mode) as batch:
    actions = rollouts.draw_actions(batch.action_space, 5, 60)
    batch.reset()
    steps = [batch.step(action) for action in actions]
    batch.reset()
    batch.final_observ.clear()
    packed = [batch.exchange(action) for action in actions]
    final_observ = batch.final_observ
  assert all(row.dtype == np.uint8 for row in packed)
  assert all(row.shape == (batch.step_layout.num_bytes,) for row in packed)
  rebuilt = []
  for row in packed:
    views = batch.step_layout.views(row)
    next_observ = views["observ"].copy()
    for index in np.flatnonzero(views["terminated"] | views["truncated"]):
      next_observ[index] = final_observ.pop(0)
    rebuilt.append((batch_env.Step(next_observ=next_observ, **views), []))
  assert final_observ == []
  rollouts.assert_same_bits([(step, []) for step in steps], rebuilt)


def test_packed_steps_do_not_change_afterwards(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    packed = batch.exchange(np.zeros((2, 1)))
    before = packed.copy()
    batch.exchange(np.zeros((2, 1)))
    batch.reset([1, 2])
  assert packed.tobytes() == before.tobytes()


def test_actions_are_rescaled_to_the_space(mode):
  with batch_env.BatchEnv([toy.Counter] * 4, mode) as batch:
    batch.reset()
    batch.step(np.array([[-7], [-0.5], [1], [7]]))
    assert [x.tolist() for x in batch.get("last_action")] == [
        [-2], [-1], [2], [2]]


def test_wrong_action_shape(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    for wrong in ((1,), (2,), (3, 1), (2, 2)):
      with pytest.raises(ValueError, match=r"must have shape \(2, 1\)"):
        batch.step(np.zeros(wrong))
    assert batch.step(np.zeros((2, 1))).reward.tolist() == [1, 1]


def test_fractions_of_discrete_actions_are_refused(mode):
  constructor = functools.partial(gymnasium.make, "CartPole-v1")
  with batch_env.BatchEnv([constructor] * 2, mode) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="must be of int64, .*float64"):
      batch.step(np.array([0.9, 1.0]))
    with pytest.raises(ValueError, match="must be of int64, .*float64"):
      batch.rollout(lambda observ: np.array([0.9, 1.0]), 1)
    batch.step(np.array([0, 1], np.int8))


def test_step_before_reset(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    with pytest.raises(RuntimeError, match=r"reset\(\)"):
      batch.step(np.zeros((2, 1)))


def test_time_of_stepping_is_counted(mode):
  with batch_env.BatchEnv([toy.Counter], mode) as batch:
    batch.reset()
    assert batch.step_seconds == 0
    batch.step(np.zeros((1, 1)))
    assert batch.step_seconds > 0


def test_least_time_is_that_of_the_work_shared_evenly(pool):
  # The second step takes one environment half a second, the other nothing.
  for workers, least in ((None, 0.5), (pool, 0.25)):
    with batch_env.BatchEnv([toy.Counter, faulty_envs.Slow], workers) as batch:
      batch.reset()
      assert batch.least_seconds == 0
      for _ in range(2):
        batch.step(np.zeros((2, 1)))
      assert batch.step_seconds >= 0.5
      assert least <= batch.least_seconds < least + 0.2


def test_infos_of_finished_episodes(mode):
  constructors = [functools.partial(toy.Counter, length)
                  for length in (2, 3, 9)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    for _ in range(4):
      batch.step(np.zeros((3, 1)))
    finished = batch.finished
  # Steps count 1, 2, 3 and each reports half of its number as a part.
  two = {"step": 2, "reward_part": 1.0, "reward_parts": {"reward_part": 1.5}}
  three = {
      "step": 3, "reward_part": 1.5, "reward_parts": {"reward_part": 3.0}}
  assert [(episode.score, episode.length, episode.info) for episode in finished
          ] == [(3.0, 2, two), (6.0, 3, three), (3.0, 2, two)]
  assert all(type(episode) is episodes.Episode for episode in finished)


@pytest.mark.parametrize("action_repeat", [1, 4])
def test_reward_parts_add_up_to_the_score(action_repeat):
  constructor = rollouts.make_env(
      "HalfCheetah-v5", max_length=20, action_repeat=action_repeat)
  steps = rollouts.play([constructor] * 2, None, steps=20)[1]
  score = sum(step.reward for step, _ in steps)
  for index, episode in enumerate(steps[-1][1]):
    parts = episode.info["reward_parts"]
    assert set(parts) == {"reward_forward", "reward_ctrl"}
    np.testing.assert_allclose(
        sum(parts.values()), score[index], rtol=1e-3)
  assert len(steps[-1][1]) == 2


def test_of_every_environment_in_order(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["toy"], mode) as batch:
    assert batch.get("length") == [1, 2, 3, 4, 50]
    assert batch.call("add", 3) == [3] * 5
    assert batch.call("add", 3, second=4) == [7] * 5


def test_reach_through_wrappers(mode):
  constructor = rollouts.make_env(
      "tests.toy:Counter", max_length=2, frame_delta=True)
  with batch_env.BatchEnv([constructor] * 2, mode) as batch:
    assert batch.get("length") == [3, 3]
    assert batch.call("add", 1, 1) == [2, 2]


def test_unknown_name(mode):
  with batch_env.BatchEnv([toy.Counter] * 3, mode) as batch:
    with pytest.raises(AttributeError, match="nothing") as caught:
      batch.get("nothing")
    assert "Environment 0" in str(caught.value.__cause__)
    with pytest.raises(AttributeError, match="nothing"):
      batch.call("nothing")
    with pytest.raises(TypeError):
      batch.call("add")
    assert batch.get("length") == [3, 3, 3]


def test_what_cannot_be_pickled_arrives_as_text(pool):
  with batch_env.BatchEnv([faulty_envs.Inside] * 3, pool) as batch:
    locks = batch.get("lock")
  assert len(locks) == 3
  assert all(isinstance(lock, str) and "lock" in lock for lock in locks)


def test_length_and_spaces(mode):
  with batch_env.BatchEnv([toy.Counter] * 3, mode) as batch:
    assert len(batch) == 3
    assert batch.observation_space == toy.Counter().observation_space
    assert batch.action_space == toy.Counter().action_space


def test_closed_batches_say_so(mode):
  batch = batch_env.BatchEnv([toy.Counter] * 3, mode)
  batch.reset()
  batch.close()
  batch.close()
  for use in (batch.reset, lambda: batch.step(np.zeros((3, 1))),
              lambda: batch.get("length"), lambda: batch.call("add", 1)):
    with pytest.raises(RuntimeError, match="closed"):
      use()


def test_closes_every_environment(mode, tmp_path):
  path = tmp_path / "diary"
  constructors = [
      functools.partial(faulty_envs.Diary, path, name) for name in "abc"]
  batch = batch_env.BatchEnv(constructors, mode)
  assert rollouts.not_closed(path) == {"a": 1, "b": 1, "c": 1}
  batch.close()
  assert rollouts.not_closed(path) == {}


def test_closes_every_environment_although_one_fails(mode, tmp_path):
  path = tmp_path / "diary"
  constructors = [functools.partial(faulty_envs.Diary, path, name, fault)
                  for name, fault in (("a", ""), ("b", "close"), ("c", ""))]
  batch = batch_env.BatchEnv(constructors, mode)
  with pytest.raises(ValueError, match="faulty close") as caught:
    batch.close()
  assert "Environment 1" in str(caught.value.__cause__)
  assert rollouts.not_closed(path) == {}
  batch.close()


def test_exit_while_closing_does_not_end_the_trainer(mode, tmp_path):
  constructors = [functools.partial(faulty_envs.Diary, tmp_path / "diary", "a"),
                  functools.partial(faulty_envs.Diary, tmp_path / "diary", "b", "exit")]
  batch = batch_env.BatchEnv(constructors, mode)
  with pytest.raises(base.EnvironmentFailure, match="SystemExit"):
    batch.close()


def test_a_batch_that_cannot_be_built_is_closed(mode, tmp_path):
  path = tmp_path / "diary"
  constructors = [functools.partial(faulty_envs.Diary, path, name, fault)
                  for name, fault in (
                      ("a", ""), ("b", ""), ("c", ""), ("d", "constructor"))]
  with pool_lib.WorkerPool(2) as workers:
    with pytest.raises(ValueError, match="faulty constructor"):
      batch_env.BatchEnv(constructors, workers if mode else None)
  assert rollouts.not_closed(path) == {}


def test_nothing_is_left_open(mode):
  gc.collect()
  before = len(os.listdir("/proc/self/fd"))
  for _ in range(3):
    rollouts.play(rollouts.BATCHES["toy"], mode, steps=5)
  gc.collect()
  assert len(os.listdir("/proc/self/fd")) == before
