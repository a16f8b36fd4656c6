"""Lining up steps, against a loop over environments and time."""

import numpy as np
import pytest
import tensorflow as tf

from agents import types
from agents.algorithms import chunks
from agents.simulation import frame_stack
from agents.simulation import rollout


def _transitions(valid, terminated=None, truncated=None):
  """Steps that say where they are from, as 100 * env + time."""
  steps, batch = valid.shape
  name = 100.0 * np.arange(batch) + np.arange(steps)[:, None]
  nowhere = np.zeros(valid.shape, bool)
  return types.Transition(
      observ=np.stack([name, -name], -1).astype(np.float32),
      action=(name + 0.25).astype(np.float32),
      reward=(name + 0.5).astype(np.float32),
      terminated=nowhere if terminated is None else terminated,
      truncated=nowhere if truncated is None else truncated,
      next_observ=np.stack([name + 0.75, -name], -1).astype(np.float32),
      valid=valid)


def _arrange(memory, transitions, prepare=lambda function: function):
  result = prepare(memory.flatten)(
      tf.nest.map_structure(tf.constant, transitions))
  return tf.nest.map_structure(lambda field: field.numpy(), result)


def _naive(transitions):
  """Lists of the rows, and of the final observations."""
  rows = {name: [] for name in types.Experience._fields
          if name not in ("final_observ", "segments")}
  finals = []
  steps, batch = transitions.valid.shape
  for env in range(batch):
    for step in range(steps):
      if not transitions.valid[step, env]:
        continue
      last = (transitions.terminated[step, env]
              or transitions.truncated[step, env]
              or step + 1 == steps or not transitions.valid[step + 1, env])
      for name in ("observ", "action", "reward", "terminated", "truncated"):
        rows[name].append(getattr(transitions, name)[step, env])
      rows["valid"].append(True)
      rows["sequence"].append(len(finals))
      rows["last"].append(last)
      if last:
        finals.append(transitions.next_observ[step, env])
  return rows, finals


def _check(memory, transitions, prepare=lambda function: function):
  experience = _arrange(memory, transitions, prepare)
  rows, finals = _naive(transitions)
  amount = len(rows["valid"])
  for name, expected in rows.items():
    field = getattr(experience, name)
    assert len(field) == memory.rows, name
    np.testing.assert_array_equal(field[:amount], expected, err_msg=name)
  assert not experience.valid[amount:].any()
  assert len(experience.final_observ) == memory.sequences
  np.testing.assert_array_equal(experience.final_observ[:len(finals)], finals)
  # Padding is as harmless as any step.
  for name in ("observ", "action", "reward", "sequence"):
    field = getattr(experience, name)
    np.testing.assert_array_equal(
        field[amount:], np.broadcast_to(field[0], field[amount:].shape))
  np.testing.assert_array_equal(
      experience.final_observ[len(finals):],
      np.broadcast_to(finals[0], experience.final_observ[len(finals):].shape))


# XLA can't know how many steps are valid, so arranging stays outside of it.
@pytest.mark.parametrize(
    "prepare", [lambda function: function, tf.function], ids=["eager", "graph"])
@pytest.mark.parametrize("seed", range(4))
def test_equals_a_loop_over_environments_and_time(prepare, seed):
  rng = np.random.default_rng(seed)
  shape = 9, 5
  valid = rng.random(shape) < 0.8
  valid[:, 1] = False  # One that only waits.
  terminated, truncated = rng.random((2, *shape)) < 0.15
  memory = rollout.RolloutSpec(9, None, chunks.padded_rows(45), chunks.padded_rows(45))
  _check(memory, _transitions(
      valid, valid & terminated, valid & truncated), prepare)


@pytest.mark.parametrize("seed", range(4))
def test_segments_are_full(seed):
  memory = rollout.segments(num_envs=3, length=7)
  assert memory.quota is None
  assert memory.steps == 7 and memory.rows == memory.sequences == 21
  rng = np.random.default_rng(seed)
  terminated, truncated = rng.random((2, 7, 3)) < 0.3
  transitions = _transitions(np.ones((7, 3), bool), terminated, truncated)
  _check(memory, transitions)
  assert _arrange(memory, transitions).valid.all()


def test_segments_have_room_for_an_end_at_every_step():
  memory = rollout.segments(num_envs=3, length=7)
  ends = np.ones((7, 3), bool)
  transitions = _transitions(ends, ends)
  _check(memory, transitions)
  np.testing.assert_array_equal(
      _arrange(memory, transitions).sequence, np.arange(21))


def _play(quota, max_length, rng):
  """Episodes of any length, until every environment has done its share."""
  steps, batch = quota[0] * max_length, len(quota)
  valid, terminated, truncated = np.zeros((3, steps, batch), bool)
  for env, episodes in enumerate(quota):
    end = 0
    for _ in range(episodes):
      length = rng.integers(1, max_length + 1)
      valid[end: end + length, env] = True
      end += length
      (truncated if length == max_length else terminated)[end - 1, env] = True
  taken = np.flatnonzero(valid.any(1)).max() + 1
  return _transitions(valid[:taken], terminated[:taken], truncated[:taken])


def test_large_memories_have_room_for_whole_chunks():
  memory = rollout.segments(num_envs=2, length=1025)
  assert memory.steps == 1025 and memory.rows == memory.sequences == 2050
  memory = rollout.segments(num_envs=7, length=293)
  assert memory.steps == 293 and memory.rows == memory.sequences == 2055
  _check(memory, _transitions(np.ones((293, 7), bool)))
  memory = rollout.episodes(num_envs=7, num_episodes=2051, max_length=1)
  assert memory.steps == 293 and memory.rows == memory.sequences == 2055


@pytest.mark.parametrize("num_envs, amount, max_length", [
    (3, 3, 4), (3, 7, 5), (1, 4, 1), (4, 5, 205)])
def test_episodes_fit_whatever_their_lengths(num_envs, amount, max_length):
  memory = rollout.episodes(num_envs, amount, max_length)
  assert sum(memory.quota) == amount
  assert memory.steps == -(-amount // num_envs) * max_length
  assert memory.rows == chunks.padded_rows(amount * max_length)
  assert memory.sequences == chunks.padded_rows(amount)
  for seed in range(3):
    transitions = _play(memory.quota, max_length, np.random.default_rng(seed))
    _check(memory, transitions)
    experience = _arrange(memory, transitions)
    assert experience.last[experience.valid].sum() == amount


def test_the_longest_episodes_fill_the_memory():
  memory = rollout.episodes(num_envs=2, num_episodes=5, max_length=3)
  class Longest:
    integers = staticmethod(lambda low, high: high - 1)
  experience = _arrange(memory, _play(memory.quota, 3, Longest))
  assert experience.valid.sum() == memory.rows == 15


@pytest.mark.parametrize("amount, num_envs, expected", [
    (3, 3, (1, 1, 1)), (7, 3, (3, 2, 2)), (8, 3, (3, 3, 2)), (5, 1, (5,)),
    (2, 3, (1, 1, 0))])
def test_shares_differ_by_one_at_most(amount, num_envs, expected):
  assert rollout.shares(amount, num_envs) == expected


def test_every_sequence_ends_in_its_own_true_successor():
  valid = np.array([[1, 1], [1, 1], [1, 0], [1, 1], [1, 1]], bool)
  terminated, truncated = np.zeros((2, 5, 2), bool)
  terminated[1, 0] = truncated[3, 0] = True
  memory = rollout.RolloutSpec(5, None, 12, 12)
  experience = _arrange(memory, _transitions(valid, terminated, truncated))
  np.testing.assert_array_equal(
      experience.observ[:9, 0], [0, 1, 2, 3, 4, 100, 101, 103, 104])
  np.testing.assert_array_equal(
      experience.sequence[:9], [0, 0, 1, 1, 2, 3, 3, 4, 4])
  np.testing.assert_array_equal(
      np.flatnonzero(experience.last[:9]), [1, 3, 4, 6, 8])
  np.testing.assert_array_equal(
      experience.final_observ[:5, 0], [1.75, 3.75, 4.75, 101.75, 104.75])


@pytest.mark.parametrize("observ, action, dtype", [
    ((), (), np.int64), ((2, 2), (3,), np.float32)])
def test_shapes_are_known_although_the_number_of_steps_is_not(
    observ, action, dtype):
  memory = rollout.episodes(num_envs=3, num_episodes=4, max_length=5)
  def spec(shape, dtype):
    return tf.TensorSpec([None, 3, *shape], dtype)
  specs = types.Transition(
      spec(observ, np.uint8), spec(action, dtype), spec((), np.float32),
      spec((), bool), spec((), bool), spec(observ, np.uint8), spec((), bool))
  arranged = tf.function(memory.flatten).get_concrete_function(specs)
  shapes = types.Experience(*[
      (tuple(field.shape), field.dtype)
      for field in arranged.structured_outputs[:-1]])
  rows = memory.rows
  assert shapes == types.Experience(
      ((rows, *observ), tf.uint8), ((rows, *action), tf.as_dtype(dtype)),
      ((rows,), tf.float32), ((rows,), tf.bool), ((rows,), tf.bool),
      ((rows,), tf.bool), ((rows,), tf.bool), ((rows,), tf.int32),
      ((memory.sequences, *observ), tf.uint8))


def test_brief_episodes_may_all_be_truncated():
  assert rollout.segments(4, 96).room == 4 * 8
  assert rollout.segments(4, 1).room == 4
  assert rollout.segments(4, 96, brief=True).room == 4 * 96


@pytest.mark.parametrize("stack", [1, 4])
def test_a_rollout_of_pictures_takes_little_more_than_its_frames(stack):
  steps, batch = 128, 64
  def zeros(kind, *shape):
    return tf.zeros([steps, batch, *shape], kind)
  never = zeros(tf.bool)
  picture = zeros(tf.uint8, 84, 84)
  transitions = types.Transition(
      picture, zeros(tf.int64), zeros(tf.float32), never, never, picture,
      ~never, final_observ=picture[0, :0])
  recent = frame_stack.initial_recent(picture[0, :1], batch, stack)
  memory = rollout.segments(batch, steps).flatten(
      transitions, types.PolicyState(recent), picture[0])
  assert memory.final_observ.frames is memory.observ.frames
  size = sum(tensor.numpy().nbytes for tensor in tf.nest.flatten(
      memory._replace(final_observ=memory.final_observ.index),
      expand_composites=True))
  assert size < 1.2 * picture.numpy().nbytes
