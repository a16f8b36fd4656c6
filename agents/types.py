"""Tuples of tensors that modules exchange. T: steps, B: environments."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Transition(NamedTuple):
  """One environment step for all B environments, or T of them: [T, B, ...]."""

  observ: tf.Tensor  # [B, ...], before the action.
  action: tf.Tensor  # [B, ...] float32 or int64, as sampled (not clipped).
  reward: tf.Tensor  # [B] float32, unnormalized.
  terminated: tf.Tensor  # [B] bool, no future reward exists.
  truncated: tf.Tensor  # [B] bool, time limit: future reward exists.
  next_observ: tf.Tensor  # [B, ...], true successor, never a reset.
  valid: tf.Tensor  # [B] bool, false if the environment waited or failed.
  final_observ: Any = ()  # [E, ...], rows of `next_observ` that end episodes.


class FrameIndices(tf.experimental.ExtensionType):
  """Observations that consist of several frames, each of them stored once.

  `tf.nest` treats it as one tensor of shape [N, stack, ...].
  """

  frames: tf.Tensor  # [F, ...]
  index: tf.Tensor  # [N, stack] int32, positions in `frames`, the latest last.

  @property
  def shape(self) -> tf.TensorShape:
    """Shape of the observations, [N, stack, ...]."""
    return self.index.shape + self.frames.shape[1:]

  def gather_frames(self) -> tf.Tensor:
    """Returns the observations as one tensor of shape [N, stack, ...]."""
    return tf.gather(self.frames, self.index)


@tf.experimental.dispatch_for_api(tf.gather, {"params": FrameIndices})
def _gather_rows(params, indices, validate_indices=None,
                 axis=None, batch_dims=0, name=None) -> FrameIndices:
  """Selects rows of observations; they share the frames."""
  return FrameIndices(params.frames, tf.gather(
      params.index, indices, validate_indices, axis, batch_dims, name))


def map_tensors(function: Callable[[tf.Tensor], tf.Tensor], data: Any) -> Any:
  """Selects or reshapes the rows of all tensors of a structure.

  Args:
    function: Maps a tensor of shape [N, ...] to another one.
    data: Structure of tensors and `FrameIndices`; the frames of the latter stay
      the same.
  """
  return tf.nest.map_structure(
      lambda leaf: (FrameIndices(leaf.frames, function(leaf.index))
                    if isinstance(leaf, FrameIndices) else function(leaf)),
      data)


class Segments(NamedTuple):
  """S sequences of T steps, which recurrent policies learn from as a whole."""

  # [S, T] bool. An episode begins with this step. False in the first step, for
  # which `state` is the recurrent state.
  first: tf.Tensor
  state: tf.Tensor  # [S, size], of the cells before the first step.


class Experience(NamedTuple):
  """The batch of one update: sequences of steps, and padding up to N rows.

  Sequences follow one another. A sequence is an episode, or the part of one
  that the batch contains.
  """

  observ: Any  # [N, ...] tensor or `FrameIndices`, before the action.
  action: tf.Tensor  # [N, ...] float32 or int64, as sampled (not clipped).
  reward: tf.Tensor  # [N] float32, unnormalized.
  terminated: tf.Tensor  # [N] bool, no future reward exists.
  truncated: tf.Tensor  # [N] bool, time limit.
  valid: tf.Tensor  # [N] bool, false in the padding.
  last: tf.Tensor  # [N] bool, the last step of its sequence.
  sequence: tf.Tensor  # [N] int32, number of the sequence, from 0.
  final_observ: Any  # [S, ...], true successor of each sequence's last step.
  # `Segments` if every step kept its place: row T * s + t is step t of segment
  # s, and invalid steps can be anywhere. Otherwise ().
  segments: Any = ()


class PolicyState(NamedTuple):
  """State of a policy between the steps of B running episodes."""

  recent: Any = ()  # `frame_stack.Recent`, the last observations.
  cell: Any = ()  # [B, size], state of recurrent cells; zeros at the beginning.


NOTHING = PolicyState()


class Carry(NamedTuple):
  """State of the simulation between two rollouts."""

  observ: tf.Tensor  # [B, ...], for the next actions.
  step_counter: tf.Tensor  # [] int64, batched steps so far; seeds the noise.
  state: Any = NOTHING  # State of the policy in the running episodes.
