"""Stacked frames, compared with lists of each episode's observations."""

import numpy as np
import pytest
import tensorflow as tf

from agents import types
from agents.simulation import frame_stack
from tests.support import modes

_BATCH, _STEPS = 3, 7


def _play(seed, num_rollouts=3):
  """Plays random episodes; all observations are distinct numbers.

  Yields:
    For each rollout: transitions, [T, B, ...]; observations after the rollout,
    [B, ...]; and a list seen[t][b] with all observations of the episode up to
    step t and the true successor.
  """
  rng = np.random.default_rng(seed)
  count = iter(range(1, 10**6))
  episodes = [[next(count)] for _ in range(_BATCH)]
  for _ in range(num_rollouts):
    observ = np.zeros((_STEPS, _BATCH), int)
    terminated, truncated, valid = np.zeros((3, _STEPS, _BATCH), bool)
    final, seen = [], []
    for t in range(_STEPS):
      seen.append([])
      for b in range(_BATCH):
        end = rng.choice(["", "", "terminated", "truncated", "both", "failed"])
        observ[t, b] = episodes[b][-1]
        successor = next(count)
        valid[t, b] = end != "failed"
        terminated[t, b] = end in ("terminated", "both")
        truncated[t, b] = end in ("truncated", "both")
        seen[-1].append((list(episodes[b]), successor))
        if not end:
          episodes[b].append(successor)
        else:
          episodes[b] = [next(count)]
          if end != "failed":
            final.append(successor)
    next_observ = np.array([episode[-1] for episode in episodes])

    def as_images(array):  # Images of two pixels.
      return tf.constant(np.stack([array, -array], -1), tf.float32)

    unused = np.zeros((_STEPS, _BATCH))
    fields = unused, unused, terminated, truncated, unused, valid
    final_observ = as_images(np.array(final, int).reshape(-1))
    transitions = types.Transition(as_images(observ), *map(tf.constant, fields), final_observ)
    yield transitions, as_images(next_observ), seen


def _last(episode, stack):
  """Returns the last observations, padded with copies of the first one."""
  return [episode[0]] * (stack - len(episode)) + episode[-stack:]


def _stack_steps(transitions, recent):
  """Returns the stacks of each step as in acting, and the state after them."""
  stacks = []
  for t in range(_STEPS):
    stacked, recent = frame_stack.stack_frames(transitions.observ[t], recent)
    stacks.append(stacked.numpy())
    ended = (transitions.terminated | transitions.truncated | ~transitions.valid)[t].numpy()
    recent = tf.nest.map_structure(
      lambda tensor, ended=ended: tf.constant(
        np.where(ended.reshape([-1] + [1] * (tensor.shape.rank - 1)), 0, tensor).astype(
          tensor.dtype.as_numpy_dtype
        )
      ),
      recent,
    )
  return np.array(stacks), recent


@modes.compiled_slowly
@pytest.mark.parametrize("stack", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_acting_and_learning_see_the_last_frames_of_each_episode(prepare, stack):
  recent = frame_stack.initial_recent(tf.zeros([1, stack, 2]), _BATCH)
  for transitions, next_observ, seen in _play(stack):
    table = prepare(lambda *arguments: frame_stack.index_frames(*arguments, room=30))(
      transitions, recent, next_observ
    )
    stacks, recent = _stack_steps(transitions, recent)
    for t in range(_STEPS):
      for b in range(_BATCH):
        episode, successor = seen[t][b]
        expected = _last(episode, stack)
        assert stacks[t, b, :, 0].tolist() == expected
        found = tf.gather(table.frames, table.step[t, b])
        assert found[:, 0].numpy().tolist() == expected
        np.testing.assert_array_equal(found[:, 1], -found[:, 0])
        valid, terminated = transitions.valid[t, b], transitions.terminated[t, b]
        if valid and not terminated:
          found = tf.gather(table.frames, table.successor[t, b])
          assert found[:, 0].numpy().tolist() == _last([*episode, successor], stack)


def test_frames_are_stored_once():
  transitions, next_observ, _ = next(_play(0))
  recent = frame_stack.initial_recent(tf.zeros([1, 4, 2]), _BATCH)
  table = frame_stack.index_frames(transitions, recent, next_observ, room=30)
  assert len(table.frames) == (3 + _STEPS + 1) * _BATCH + 30


def test_too_many_truncated_episodes_are_an_error():
  transitions, next_observ, _ = next(_play(0))
  recent = frame_stack.initial_recent(tf.zeros([1, 4, 2]), _BATCH)
  with pytest.raises(tf.errors.InvalidArgumentError, match="frame_stack"):
    frame_stack.index_frames(transitions, recent, next_observ, room=1)
