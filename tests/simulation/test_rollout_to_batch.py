"""Batches of rollouts, compared with a loop over environments and time."""

import numpy as np
import pytest
import tensorflow as tf

from agents import types
from agents.algorithms import gradient_accumulation
from agents.simulation import frame_stack, rollout_to_batch


def _transitions(valid, terminated=None, truncated=None):
  """Returns steps; each field contains 100 * env + time plus an offset."""
  steps, batch = valid.shape
  value = 100.0 * np.arange(batch) + np.arange(steps)[:, None]
  never = np.zeros(valid.shape, bool)
  return types.Transition(
    observ=np.stack([value, -value], -1).astype(np.float32),
    action=(value + 0.25).astype(np.float32),
    reward=(value + 0.5).astype(np.float32),
    terminated=never if terminated is None else terminated,
    truncated=never if truncated is None else truncated,
    next_observ=np.stack([value + 0.75, -value], -1).astype(np.float32),
    valid=valid,
  )


def _flatten(spec, transitions, prepare=lambda function: function):
  result = prepare(spec.flatten)(tf.nest.map_structure(tf.constant, transitions))
  return tf.nest.map_structure(lambda field: field.numpy(), result)


def _naive(transitions):
  """Returns the fields of valid rows, by name, and the final observations."""
  rows = {name: [] for name in types.Experience._fields if name not in ("final_observ", "segments")}
  finals = []
  steps, batch = transitions.valid.shape
  for env in range(batch):
    for step in range(steps):
      if not transitions.valid[step, env]:
        continue
      last = (
        transitions.terminated[step, env]
        or transitions.truncated[step, env]
        or step + 1 == steps
        or not transitions.valid[step + 1, env]
      )
      for name in ("observ", "action", "reward", "terminated", "truncated"):
        rows[name].append(getattr(transitions, name)[step, env])
      rows["valid"].append(True)
      rows["sequence"].append(len(finals))
      rows["last"].append(last)
      if last:
        finals.append(transitions.next_observ[step, env])
  return rows, finals


def _check(spec, transitions, prepare=lambda function: function):
  experience = _flatten(spec, transitions, prepare)
  rows, finals = _naive(transitions)
  num_rows = len(rows["valid"])
  for name, expected in rows.items():
    field = getattr(experience, name)
    assert len(field) == spec.rows, name
    np.testing.assert_array_equal(field[:num_rows], expected, err_msg=name)
  assert not experience.valid[num_rows:].any()
  assert len(experience.final_observ) == spec.sequences
  np.testing.assert_array_equal(experience.final_observ[: len(finals)], finals)
  # Padding repeats the first step.
  for name in ("observ", "action", "reward", "sequence"):
    field = getattr(experience, name)
    np.testing.assert_array_equal(
      field[num_rows:], np.broadcast_to(field[0], field[num_rows:].shape)
    )
  np.testing.assert_array_equal(
    experience.final_observ[len(finals) :],
    np.broadcast_to(finals[0], experience.final_observ[len(finals) :].shape),
  )


# XLA does not support the dynamic number of valid steps.
@pytest.mark.parametrize(
  "prepare", [lambda function: function, tf.function], ids=["eager", "graph"]
)
@pytest.mark.parametrize("seed", range(4))
def test_flatten_equals_a_loop_over_environments_and_time(prepare, seed):
  rng = np.random.default_rng(seed)
  shape = 9, 5
  valid = rng.random(shape) < 0.8
  valid[:, 1] = False  # Environment 1 always waits.
  terminated, truncated = rng.random((2, *shape)) < 0.15
  rows = gradient_accumulation.padded_rows(45)
  spec = rollout_to_batch.RolloutSpec(9, None, rows, rows)
  _check(spec, _transitions(valid, valid & terminated, valid & truncated), prepare)


@pytest.mark.parametrize("seed", range(4))
def test_segments_have_no_padding(seed):
  spec = rollout_to_batch.segments(num_envs=3, length=7)
  assert spec.quota is None
  assert spec.steps == 7 and spec.rows == spec.sequences == 21
  rng = np.random.default_rng(seed)
  terminated, truncated = rng.random((2, 7, 3)) < 0.3
  transitions = _transitions(np.ones((7, 3), bool), terminated, truncated)
  _check(spec, transitions)
  assert _flatten(spec, transitions).valid.all()


def test_segments_have_room_for_an_end_at_every_step():
  spec = rollout_to_batch.segments(num_envs=3, length=7)
  ends = np.ones((7, 3), bool)
  transitions = _transitions(ends, ends)
  _check(spec, transitions)
  np.testing.assert_array_equal(_flatten(spec, transitions).sequence, np.arange(21))


def _play(quota, max_length, rng):
  """Returns steps of `quota[env]` episodes of random lengths."""
  steps, batch = quota[0] * max_length, len(quota)
  valid, terminated, truncated = np.zeros((3, steps, batch), bool)
  for env, episodes in enumerate(quota):
    end = 0
    for _ in range(episodes):
      length = rng.integers(1, max_length + 1)
      valid[end : end + length, env] = True
      end += length
      (truncated if length == max_length else terminated)[end - 1, env] = True
  taken = np.flatnonzero(valid.any(1)).max() + 1
  return _transitions(valid[:taken], terminated[:taken], truncated[:taken])


def test_large_batches_have_room_for_whole_chunks():
  spec = rollout_to_batch.segments(num_envs=2, length=1025)
  assert spec.steps == 1025 and spec.rows == spec.sequences == 2050
  spec = rollout_to_batch.segments(num_envs=7, length=293)
  assert spec.steps == 293 and spec.rows == spec.sequences == 2055
  _check(spec, _transitions(np.ones((293, 7), bool)))
  spec = rollout_to_batch.episodes(num_envs=7, num_episodes=2051, max_length=1)
  assert spec.steps == 293 and spec.rows == spec.sequences == 2055


@pytest.mark.parametrize(
  "num_envs, num_episodes, max_length", [(3, 3, 4), (3, 7, 5), (1, 4, 1), (4, 5, 205)]
)
def test_episodes_of_all_lengths_fit(num_envs, num_episodes, max_length):
  spec = rollout_to_batch.episodes(num_envs, num_episodes, max_length)
  assert sum(spec.quota) == num_episodes
  assert spec.steps == -(-num_episodes // num_envs) * max_length
  assert spec.rows == gradient_accumulation.padded_rows(num_episodes * max_length)
  assert spec.sequences == gradient_accumulation.padded_rows(num_episodes)
  for seed in range(3):
    transitions = _play(spec.quota, max_length, np.random.default_rng(seed))
    _check(spec, transitions)
    experience = _flatten(spec, transitions)
    assert experience.last[experience.valid].sum() == num_episodes


def test_longest_episodes_fill_the_batch():
  spec = rollout_to_batch.episodes(num_envs=2, num_episodes=5, max_length=3)

  class Longest:
    integers = staticmethod(lambda low, high: high - 1)

  experience = _flatten(spec, _play(spec.quota, 3, Longest))
  assert experience.valid.sum() == spec.rows == 15


@pytest.mark.parametrize(
  "num_episodes, num_envs, expected",
  [(3, 3, (1, 1, 1)), (7, 3, (3, 2, 2)), (8, 3, (3, 3, 2)), (5, 1, (5,)), (2, 3, (1, 1, 0))],
)
def test_shares_of_episodes_differ_by_one_at_most(num_episodes, num_envs, expected):
  assert rollout_to_batch.shares(num_episodes, num_envs) == expected


def test_every_sequence_ends_with_its_own_true_successor():
  valid = np.array([[1, 1], [1, 1], [1, 0], [1, 1], [1, 1]], bool)
  terminated, truncated = np.zeros((2, 5, 2), bool)
  terminated[1, 0] = truncated[3, 0] = True
  spec = rollout_to_batch.RolloutSpec(5, None, 12, 12)
  experience = _flatten(spec, _transitions(valid, terminated, truncated))
  np.testing.assert_array_equal(experience.observ[:9, 0], [0, 1, 2, 3, 4, 100, 101, 103, 104])
  np.testing.assert_array_equal(experience.sequence[:9], [0, 0, 1, 1, 2, 3, 3, 4, 4])
  np.testing.assert_array_equal(np.flatnonzero(experience.last[:9]), [1, 3, 4, 6, 8])
  np.testing.assert_array_equal(experience.final_observ[:5, 0], [1.75, 3.75, 4.75, 101.75, 104.75])


@pytest.mark.parametrize("observ, action, dtype", [((), (), np.int64), ((2, 2), (3,), np.float32)])
def test_shapes_are_static_for_dynamic_numbers_of_steps(observ, action, dtype):
  spec = rollout_to_batch.episodes(num_envs=3, num_episodes=4, max_length=5)

  def tensor(shape, dtype):
    return tf.TensorSpec([None, 3, *shape], dtype)

  transitions = types.Transition(
    tensor(observ, np.uint8),
    tensor(action, dtype),
    tensor((), np.float32),
    tensor((), bool),
    tensor((), bool),
    tensor(observ, np.uint8),
    tensor((), bool),
  )
  flatten = tf.function(spec.flatten).get_concrete_function(transitions)
  shapes = types.Experience(
    *[(tuple(field.shape), field.dtype) for field in flatten.structured_outputs[:-1]]
  )
  rows = spec.rows
  assert shapes == types.Experience(
    ((rows, *observ), tf.uint8),
    ((rows, *action), tf.as_dtype(dtype)),
    ((rows,), tf.float32),
    ((rows,), tf.bool),
    ((rows,), tf.bool),
    ((rows,), tf.bool),
    ((rows,), tf.bool),
    ((rows,), tf.int32),
    ((spec.sequences, *observ), tf.uint8),
  )


def test_brief_segments_have_room_for_a_truncation_at_every_step():
  assert rollout_to_batch.segments(4, 96).room == 4 * 8
  assert rollout_to_batch.segments(4, 1).room == 4
  assert rollout_to_batch.segments(4, 96, time_limit=16).room == 4 * 8
  assert rollout_to_batch.segments(4, 96, time_limit=15).room == 4 * 96


@pytest.mark.parametrize("stack", [1, 4])
def test_batch_of_images_takes_little_more_memory_than_its_frames(stack):
  steps, batch = 128, 64

  def zeros(dtype, *shape):
    return tf.zeros([steps, batch, *shape], dtype)

  never = zeros(tf.bool)
  images = zeros(tf.uint8, 84, 84)
  transitions = types.Transition(
    images,
    zeros(tf.int64),
    zeros(tf.float32),
    never,
    never,
    images,
    ~never,
    final_observ=images[0, :0],
  )
  recent = frame_stack.initial_recent(tf.repeat(images[:1, :1], stack, 1), batch)
  result = rollout_to_batch.segments(batch, steps).flatten(
    transitions, types.PolicyState(recent), images[0]
  )
  assert result.final_observ.frames is result.observ.frames
  size = sum(
    tensor.numpy().nbytes
    for tensor in tf.nest.flatten(
      result._replace(final_observ=result.final_observ.index), expand_composites=True
    )
  )
  assert size < 1.2 * images.numpy().nbytes
