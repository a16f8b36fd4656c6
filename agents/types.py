"""The shapes that travel through the graph. T: steps, B: environments."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import tensorflow as tf


class Transition(NamedTuple):
  """One environment step for all B environments, or T of them: [T, B, ...]."""

  observ: tf.Tensor  # [B, ...], before the action.
  action: tf.Tensor  # [B, ...] float32 or int64, as sampled (not clipped).
  reward: tf.Tensor  # [B] float32, as the environment gave it.
  terminated: tf.Tensor  # [B] bool, no future reward exists.
  truncated: tf.Tensor  # [B] bool, time limit: reward would go on.
  next_observ: tf.Tensor  # [B, ...], true successor, never a reset.
  valid: tf.Tensor  # [B] bool, false where the environment waited or failed.
  # [E, ...], of T steps: those of `next_observ` where an episode ended.
  final_observ: Any = ()


class Segments(NamedTuple):
  """S sequences of T steps, which a policy that remembers needs as a whole."""

  first: tf.Tensor  # [S, T] bool, where an episode begins, but at T = 0.
  state: tf.Tensor  # [S, size], what was remembered before; zeros: nothing.


class Experience(NamedTuple):
  """Sequences of steps, one after the other, and padding up to N rows.

  A sequence is an episode or the part of one that a memory holds.
  """

  observ: tf.Tensor  # [N, ...], before the action.
  action: tf.Tensor  # [N, ...] float32 or int64, as sampled (not clipped).
  reward: tf.Tensor  # [N] float32, as the environment gave it.
  terminated: tf.Tensor  # [N] bool, no future reward exists.
  truncated: tf.Tensor  # [N] bool, time limit.
  valid: tf.Tensor  # [N] bool, false in the padding.
  last: tf.Tensor  # [N] bool, of its sequence.
  sequence: tf.Tensor  # [N] int32, counts up from 0.
  final_observ: tf.Tensor  # [S, ...], true successor of each sequence's end.
  # Where each step has kept its place, step T * s + t is segment s's t-th one,
  # and those that are not valid may be anywhere; otherwise ().
  segments: Any = ()
  # [F, ...] of pictures, and where steps are of several frames, else ().
  # Observations are then numbers of these, [N, frame_stack] and
  # [S, frame_stack] int32.
  frames: Any = ()


class PolicyState(NamedTuple):
  """What a policy remembers of B episodes, nothing or zeros as they begin."""

  recent: Any = ()  # Their last observations, see `parts.frames`.
  cell: Any = ()  # [B, size], of a recurrent cell.


NOTHING = PolicyState()


class Carry(NamedTuple):
  """What one step of the simulation hands to the next."""

  observ: tf.Tensor  # [B, ...], to act on.
  step_counter: tf.Tensor  # [] int64, batched steps so far; seeds the noise.
  state: Any = NOTHING  # What the policy remembers of the running episodes.
