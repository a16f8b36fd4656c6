"""What one update learns from: segments of all environments, or episodes."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import tensorflow as tf

from agents import types
from agents.algorithms import chunks
from agents.simulation import frame_stack


class RolloutSpec(NamedTuple):
  """When to stop collecting, and room for what was collected.

  Shapes are static only up to here: compiled learning runs on arrays of this
  size, and skips what is not filled.
  """

  steps: int  # Most batched steps of one collection.
  quota: tuple[int, ...] | None  # Episodes each environment plays; None: any.
  rows: int  # Most steps of all environments together.
  sequences: int  # Most sequences.
  in_place: bool = False  # Keep steps that are not valid, too.
  room: int = 0  # Most episodes that may be truncated, where steps are frames.

  def flatten(self, transitions: types.Transition,
              state: types.PolicyState = types.NOTHING,
              following: tf.Tensor | None = None) -> types.Experience:
    """Line up the steps, one environment after the other.

    Args:
      transitions: Tensors of shape [T, B, ...], with T up to `steps`; at least
        one step is valid.
      state: What the policy remembered before.
      following: Observations to act on next, [B, ...], if it remembers any.
    Returns:
      Tensors whose sizes are known although T is not.
    """
    if not isinstance(state, types.PolicyState):
      state = types.NOTHING  # An algorithm's own, which it learns without.
    frames: Any = ()
    if state.recent:
      assert following is not None
      frames, step, successor = frame_stack.film(
          transitions, state.recent, following,
          self.room)
      transitions = transitions._replace(
          observ=step, next_observ=successor)
    transitions = transitions._replace(final_observ=())
    valid = transitions.valid
    follows = tf.concat([valid[1:], tf.zeros_like(valid[:1])], 0)
    last = transitions.terminated | transitions.truncated | ~follows
    flat, last = tf.nest.map_structure(
        lambda tensor: tf.reshape(tensor, [-1, *tensor.shape[2:]]),
        (transitions, last))
    steps, num_envs = tf.shape(valid)[0], valid.shape[1]
    env, step = tf.unstack(tf.meshgrid(
        tf.range(num_envs), tf.range(steps), indexing="ij"), num=2)
    order = tf.reshape(step * num_envs + env, [-1])
    places = order if self.in_place else tf.boolean_mask(
        order, tf.gather(flat.valid, order))
    ends = tf.gather(last & flat.valid, places)
    sequence = tf.cumsum(tf.cast(ends, tf.int32), exclusive=True)
    def rows(tensor):
      return tf.gather(tensor, _fill(places, self.rows))
    return types.Experience(
        rows(flat.observ), rows(flat.action), rows(flat.reward),
        rows(flat.terminated), rows(flat.truncated),
        (tf.range(self.rows) < tf.shape(places)[0]) & rows(flat.valid),
        rows(last), _fill(sequence, self.rows), tf.gather(
            flat.next_observ, _fill(
                tf.boolean_mask(places, ends), self.sequences)),
        self._segments(transitions, state.cell) if self.in_place else (),
        frames)

  def _segments(self, transitions: types.Transition, state: tf.Tensor
                ) -> types.Segments:
    goes_on = transitions.valid & ~(
        transitions.terminated | transitions.truncated)
    first = tf.concat([tf.zeros_like(goes_on[:1]), ~goes_on[:-1]], 0)
    return types.Segments(tf.transpose(first), state)


def segments(num_envs: int, length: int, in_place: bool = False,
             brief: bool = False) -> RolloutSpec:
  """Memory of `length` steps of every environment.

  Args:
    num_envs: Number of environments.
    length: Steps of each.
    in_place: Keep steps that are not valid, for policies that need to know
      which step follows which.
    brief: Whether episodes are truncated after less than 16 steps, the first
      ones aside.
  """
  steps = num_envs * length
  room = steps if brief else min(steps, num_envs * (length // 16 + 2))
  return RolloutSpec(length, None, chunks.whole(steps), chunks.whole(steps),
                in_place, room)


def episodes(num_envs: int, amount: int, max_length: int) -> RolloutSpec:
  """Memory of whole episodes.

  Every environment plays its share of them, so short ones are not preferred,
  and none that has begun is left over.

  Args:
    num_envs: Number of environments.
    amount: Episodes in all, at least one of each environment.
    max_length: Most steps of an episode.
  """
  quota = shares(amount, num_envs)
  return RolloutSpec(quota[0] * max_length, quota,
                chunks.whole(amount * max_length), chunks.whole(amount))


def shares(amount: int, num_envs: int) -> tuple[int, ...]:
  """Return how many of the episodes each environment plays."""
  return tuple(len(range(index, amount, num_envs)) for index in range(num_envs))


def _fill(tensor: tf.Tensor, size: int) -> tf.Tensor:
  """Repeat the first element at the end: padding as harmless as any step."""
  rest = tf.fill([size - tf.shape(tensor)[0]], tensor[0])
  return tf.ensure_shape(tf.concat([tensor, rest], 0), [size])
