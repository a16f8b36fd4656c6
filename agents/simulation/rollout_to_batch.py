"""Converts rollouts of all environments to the batch of one update."""

from typing import NamedTuple

import tensorflow as tf

from agents import types
from agents.algorithms import gradient_accumulation
from agents.simulation import frame_stack

# With frame stacks, a batch has room for one truncated episode per 16 steps.
_STEPS_PER_TRUNCATION = 16


class RolloutSpec(NamedTuple):
  """Length of a rollout, and static sizes of the resulting batch.

  Compiled learning needs static shapes, so the batch has room for the longest
  rollout.
  """

  steps: int  # Maximum number of batched steps of one rollout, T.
  quota: tuple[int, ...] | None  # Episodes per environment; None for segments.
  rows: int  # Number of rows of the batch, N, including padding.
  sequences: int  # Maximum number of sequences in the batch, S.
  in_place: bool = False  # Whether invalid steps keep their rows.
  room: int = 0  # Maximum number of truncated episodes; for frame stacks only.

  def flatten(
    self,
    transitions: types.Transition,
    state: types.PolicyState = types.NOTHING,
    latest_observ: tf.Tensor | None = None,
  ) -> types.Experience:
    """Concatenates the steps of all environments, ordered by environment.

    Args:
      transitions: Tensors of shape [T, B, ...]. T is at most `steps`, and at
        least one step must be valid.
      state: State of the policy before the rollout.
      latest_observ: Observations after the rollout, [B, ...]; only needed for
        frame stacks.

    Returns:
      The batch. Its shapes are static, although T is dynamic.
    """
    if self.in_place and self.quota:  # Segments have a static length.
      transitions = _pad_time(transitions, self.steps)
    if not isinstance(state, types.PolicyState):
      state = types.NOTHING  # Batches omit the states of custom algorithms.
    if state.recent:
      return self._flatten_stacks(transitions, state, latest_observ)
    valid = transitions.valid
    next_valid = tf.concat([valid[1:], tf.zeros_like(valid[:1])], 0)
    last = transitions.terminated | transitions.truncated | ~next_valid
    flat, last = tf.nest.map_structure(
      lambda tensor: tf.reshape(tensor, [-1, *tensor.shape[2:]]),
      (transitions._replace(final_observ=()), last),
    )
    source = _rows_by_env(tf.shape(valid)[0], valid.shape[1])
    if not self.in_place:
      source = tf.boolean_mask(source, tf.gather(flat.valid, source))
    ends = tf.gather(last & flat.valid, source)
    sequence = tf.cumsum(tf.cast(ends, tf.int32), exclusive=True)
    if self.in_place:  # Invalid steps after the last sequence count as part of it.
      sequence = tf.minimum(sequence, tf.reduce_sum(tf.cast(ends, tf.int32)) - 1)
    rows = _pad(source, self.rows)
    final_rows = _pad(tf.boolean_mask(source, ends), self.sequences)
    observ, action, reward, terminated, truncated, valid, last = (
      tf.gather(field, rows) for field in (*flat[:5], flat.valid, last)
    )
    final_observ = tf.gather(flat.next_observ, final_rows)
    filled = tf.range(self.rows) < tf.shape(source)[0]
    valid, sequence = filled & valid, _pad(sequence, self.rows)
    context = _recurrent_context(transitions, state.cell) if self.in_place else ()
    return types.Experience(
      observ, action, reward, terminated, truncated, valid, last, sequence, final_observ, context
    )

  def _flatten_stacks(
    self, transitions: types.Transition, state: types.PolicyState, latest_observ: tf.Tensor | None
  ) -> types.Experience:
    """Flattens positions of frames like observations; see `frame_stack`."""
    table = frame_stack.index_frames(transitions, state.recent, latest_observ, self.room)
    positions = transitions._replace(observ=table.step, next_observ=table.successor)
    batch = self.flatten(positions, state._replace(recent=()))
    return batch._replace(
      observ=types.FrameIndices(table.frames, batch.observ),
      final_observ=types.FrameIndices(table.frames, batch.final_observ),
    )


def segments(
  num_envs: int, length: int, in_place: bool = False, time_limit: int | None = None
) -> RolloutSpec:
  """Returns the spec for segments of `length` steps of every environment.

  Args:
    num_envs: Number of environments.
    length: Steps of each environment.
    in_place: Whether invalid steps keep their rows. Recurrent policies need
      this, because they process each environment in order of time.
    time_limit: Time limit of episodes in steps, None if unknown. Staggered
      first episodes may be shorter.
  """
  steps = num_envs * length
  is_short = time_limit is not None and time_limit < _STEPS_PER_TRUNCATION
  room = steps if is_short else min(steps, num_envs * (length // _STEPS_PER_TRUNCATION + 2))
  # --8<-- [start:segments]
  rows = gradient_accumulation.padded_rows(steps)
  return RolloutSpec(length, None, rows, rows, in_place, room)
  # --8<-- [end:segments]


def episodes(
  num_envs: int, num_episodes: int, max_length: int, in_place: bool = False
) -> RolloutSpec:
  """Returns the spec for whole episodes.

  Every environment plays a fixed share of the episodes, so short episodes are
  not overrepresented. Every episode is played to its end.

  Args:
    num_envs: Number of environments.
    num_episodes: Number of episodes, at least `num_envs`.
    max_length: Maximum steps of an episode.
    in_place: See `segments`.
  """
  # --8<-- [start:episodes]
  quota = shares(num_episodes, num_envs)
  steps = quota[0] * max_length
  return RolloutSpec(
    steps,
    quota,
    gradient_accumulation.padded_rows(num_envs * steps if in_place else num_episodes * max_length),
    gradient_accumulation.padded_rows(num_episodes),
    in_place,
  )
  # --8<-- [end:episodes]


def shares(num_episodes: int, num_envs: int) -> tuple[int, ...]:
  """Returns the number of episodes that each environment plays.

  Args:
    num_episodes: Number of episodes of all environments.
    num_envs: Number of environments.
  """
  return tuple(len(range(index, num_episodes, num_envs)) for index in range(num_envs))


def _rows_by_env(num_steps: tf.Tensor, num_envs: int) -> tf.Tensor:
  """Returns the rows of steps [T * B], ordered by environment, then by time."""
  rows = tf.reshape(tf.range(num_steps * num_envs), [num_steps, num_envs])
  return tf.reshape(tf.transpose(rows), [-1])


def _pad_time(transitions: types.Transition, steps: int) -> types.Transition:
  """Appends invalid steps to transitions [T, B, ...], up to [steps, B, ...]."""
  missing = steps - tf.shape(transitions.valid)[0]

  def pad(field: tf.Tensor) -> tf.Tensor:
    padded = tf.pad(field, [[0, missing]] + [[0, 0]] * (field.shape.rank - 1))
    return tf.ensure_shape(padded, [steps, *field.shape[1:]])

  names = types.Transition._fields[:-1]  # All but `final_observ`.
  return transitions._replace(**{name: pad(getattr(transitions, name)) for name in names})


def _recurrent_context(transitions: types.Transition, state: tf.Tensor) -> types.Segments:
  """Returns first steps of episodes, [B, T], and initial recurrent states."""
  continues = transitions.valid & ~(transitions.terminated | transitions.truncated)
  first = tf.concat([tf.zeros_like(continues[:1]), ~continues[:-1]], 0)
  return types.Segments(tf.transpose(first), state)


def _pad(tensor: tf.Tensor, size: int) -> tf.Tensor:
  """Pads with copies of the first element, so that padding is a valid step."""
  padding = tf.fill([size - tf.shape(tensor)[0]], tensor[0])
  return tf.ensure_shape(tf.concat([tensor, padding], 0), [size])
