"""Tuples of tensors that modules exchange.

In shapes, T is the number of batched steps and B the number of environments.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Transition(NamedTuple):
  """One step of all environments. A rollout stacks T steps to [T, B, ...]."""

  observ: tf.Tensor  # [B, ...], before the action.
  action: tf.Tensor  # [B, ...] float32 or int64, as sampled (not clipped).
  reward: tf.Tensor  # [B] float32, unnormalized.
  terminated: tf.Tensor  # [B] bool, no future reward exists.
  truncated: tf.Tensor  # [B] bool, time limit: future reward exists.
  next_observ: tf.Tensor  # [B, ...], true successor, never a reset.
  valid: tf.Tensor  # [B] bool, false if the environment waited or failed.
  final_observ: Any = ()  # [E, ...], last observations of E ended episodes.


class FrameIndices(tf.experimental.ExtensionType):
  """N stacks of frames that share the memory of F distinct frames.

  `tf.nest` does not expand this type: functions receive the whole object, as if
  it were one tensor of shape [N, stack, ...].
  """

  frames: tf.Tensor  # [F, ...]
  index: tf.Tensor  # [N, stack] int32, rows of `frames`, the latest one last.

  @property
  def shape(self) -> tf.TensorShape:
    """Shape of the stacks, [N, stack, ...]."""
    return self.index.shape + self.frames.shape[1:]

  def gather_frames(self) -> tf.Tensor:
    """Returns the stacks as one tensor of shape [N, stack, ...]."""
    return tf.gather(self.frames, self.index)


@tf.experimental.dispatch_for_api(tf.gather, {"params": FrameIndices})
def _gather_rows(
  params: FrameIndices,
  indices: tf.Tensor,
  validate_indices: Any = None,
  axis: Any = None,
  batch_dims: int = 0,
  name: str | None = None,
) -> FrameIndices:
  """Implements `tf.gather`: selects stacks, and keeps all frames."""
  return FrameIndices(
    params.frames, tf.gather(params.index, indices, validate_indices, axis, batch_dims, name)
  )


def map_tensors(function: Callable[[tf.Tensor], tf.Tensor], data: Any) -> Any:
  """Applies a function that selects or reshapes rows to all tensors.

  Args:
    function: Maps a tensor of shape [N, ...] to another tensor.
    data: Structure of tensors and `FrameIndices`. The function is applied to
      the field `index` of `FrameIndices`; `frames` stays unchanged.

  Returns:
    Structure like `data`.
  """
  return tf.nest.map_structure(
    lambda leaf: (
      FrameIndices(leaf.frames, function(leaf.index))
      if isinstance(leaf, FrameIndices)
      else function(leaf)
    ),
    data,
  )


class Segments(NamedTuple):
  """Segments of T steps of B environments, for recurrent policies."""

  # [B, T] bool, whether an episode begins with the step. Always false for the
  # first step of a segment, which continues from `state`.
  first: tf.Tensor
  state: tf.Tensor  # [B, size], recurrent state before the first step.


class Experience(NamedTuple):
  """The batch of one update: sequences of steps, and padding up to N rows.

  A sequence is an episode, or the part of an episode that the batch contains.
  The rows of a sequence are consecutive. S is the maximum number of sequences.
  """

  observ: Any  # [N, ...] tensor or `FrameIndices`, before the action.
  action: tf.Tensor  # [N, ...] float32 or int64, as sampled (not clipped).
  reward: tf.Tensor  # [N] float32, unnormalized.
  terminated: tf.Tensor  # [N] bool, no future reward exists.
  truncated: tf.Tensor  # [N] bool, time limit.
  valid: tf.Tensor  # [N] bool, false in the padding.
  last: tf.Tensor  # [N] bool, the last step of its sequence.
  sequence: tf.Tensor  # [N] int32, index of the sequence, from 0.
  final_observ: Any  # [S, ...], true successor of the last step of sequence s.
  # `Segments` for recurrent policies, otherwise (). With `Segments`, row
  # T * b + t is step t of environment b, also if the step is invalid.
  segments: Any = ()


class PolicyState(NamedTuple):
  """State of a policy between two steps of B running episodes."""

  recent: Any = ()  # `frame_stack.Recent`, the latest observations.
  cell: Any = ()  # [B, size], recurrent state; zeros where an episode begins.


NOTHING = PolicyState()


class Carry(NamedTuple):
  """State of the simulation between two rollouts."""

  observ: tf.Tensor  # [B, ...], input of the policy for the next actions.
  step_counter: tf.Tensor  # [] int64, batched steps so far; seeds the noise.
  state: Any = NOTHING  # State of the policy in the running episodes.
