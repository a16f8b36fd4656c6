"""Frame stacking: a policy sees the last few observations of an episode.

Mnih et al. (2015) stack four images. At the start of an episode, copies of the
first observation fill the stack. During acting, the policy's state contains the
last observations. For learning, a table stores every frame once, and each step
refers to its frames by their positions in the table.
"""

from typing import NamedTuple

import tensorflow as tf

from agents import types

TOO_MANY_TRUNCATIONS = (
  "Too many episodes of one rollout were truncated. With images or "
  "network.frame_stack, a rollout has room for about one truncated episode "
  "per 16 steps. If the time limit of episodes is less than 16 steps, set "
  "env.max_length to this limit."
)


class Recent(NamedTuple):
  """The last observations of N running episodes."""

  observ: tf.Tensor  # [N, stack - 1, ...], the latest observation last.
  begun: tf.Tensor  # [N] bool, false before the first step of an episode.


def initial_recent(example: tf.Tensor, num_episodes: int) -> Recent:
  """Returns the state before the first step of every episode.

  Args:
    example: Stack of observations, [1, stack, ...]; only its type and shape are
      used.
    num_episodes: Number of episodes, N.
  """
  shape = [num_episodes, *example[:, 1:].shape[1:]]
  return Recent(tf.zeros(shape, example.dtype), tf.zeros([num_episodes], tf.bool))


def stack_frames(observ: tf.Tensor, recent: Recent) -> tuple[tf.Tensor, Recent]:
  """Appends observations to the previous observations of their episodes.

  Args:
    observ: Observations of shape [N, ...].
    recent: Observations before `observ`.

  Returns:
    Stacks of shape [N, stack, ...], the latest observation last, and the state
    for the next step.
  """
  begun = tf.ones_like(recent.begun)
  if not recent.observ.shape[1]:
    return observ[:, None], Recent(recent.observ, begun)
  observations = tf.concat([recent.observ, observ[:, None]], 1)
  stack = observations.shape[1]
  # At the start of an episode, the first observation fills the stack.
  position = tf.where(recent.begun[:, None], tf.range(stack), stack - 1)
  rows = tf.range(tf.shape(observ)[0])[:, None] * stack + position
  stacked = tf.gather(tf.reshape(observations, [-1, *observ.shape[1:]]), rows)
  return stacked, Recent(stacked[:, 1:], begun)


class FrameTable(NamedTuple):
  """All frames of a rollout, and the positions of each step's frames."""

  frames: tf.Tensor  # [F, ...], each observation once.
  step: tf.Tensor  # [T, B, stack] int32, positions before the action.
  successor: tf.Tensor  # [T, B, stack] int32, positions after the action.


def index_frames(
  transitions: types.Transition, recent: Recent, next_observ: tf.Tensor, room: int
) -> FrameTable:
  """Stores each observation of a rollout once and indexes the steps.

  Successors of terminated steps are arbitrary, because learning does not use
  the values of these successors.

  Args:
    transitions: Tensors of shape [T, B, ...].
    recent: The policy's last observations before the rollout.
    next_observ: Observations after the rollout, [B, ...].
    room: Maximum number of truncated episodes.

  Returns:
    The table.

  Raises:
    InvalidArgumentError: If more than `room` episodes were truncated. In a
      graph, the evaluation of `frames` raises this error.
  """
  ended = transitions.terminated | transitions.truncated
  time, num_envs = ended.shape
  stack = recent.observ.shape[1] + 1
  step = _step_index(ended | ~transitions.valid, recent.begun, stack)
  # Only truncated episodes need a successor that is not in the timeline.
  truncated = transitions.truncated & ~transitions.terminated
  finals = tf.boolean_mask(transitions.final_observ, tf.boolean_mask(truncated, ended))
  check = tf.debugging.Assert(tf.shape(finals)[0] <= room, [TOO_MANY_TRUNCATIONS])
  with tf.control_dependencies([check] if check is not None else []):
    finals = tf.pad(finals, [[0, room - tf.shape(finals)[0]]] + [[0, 0]] * (finals.shape.rank - 1))
  finals = tf.ensure_shape(finals, [room, *finals.shape[1:]])
  final_index = tf.reshape(
    tf.cumsum(tf.reshape(tf.cast(truncated, tf.int32), [-1]), exclusive=True), [time, num_envs]
  )
  latest = tf.where(
    truncated,
    (stack + time) * num_envs + final_index,
    (stack + tf.range(time)[:, None]) * num_envs + tf.range(num_envs),
  )
  # The timeline contains `num_envs` frames for each time, in order of time.
  before = tf.transpose(recent.observ, [1, 0, *range(2, recent.observ.shape.rank)])
  timeline = [
    tf.reshape(tensor, [-1, *next_observ.shape[1:]])
    for tensor in (before, transitions.observ, next_observ)
  ]
  return FrameTable(
    tf.concat([*timeline, finals], 0), step, tf.concat([step[..., 1:], latest[..., None]], -1)
  )


def _step_index(restarts: tf.Tensor, begun: tf.Tensor, stack: int) -> tf.Tensor:
  """Returns positions of the frames of each step, [T, B, stack].

  Args:
    restarts: Whether another episode begins after each step, [T, B].
    begun: See `Recent`.
    stack: Number of frames of a step.
  """
  time, num_envs = restarts.shape
  # Time index in the timeline at which the episode of each step began. The
  # timeline starts with the `stack - 1` observations before the rollout.
  begin = tf.concat(
    [
      tf.where(begun, 0, stack - 1)[None],
      tf.where(restarts[:-1], stack - 1 + tf.range(1, time)[:, None], 0),
    ],
    0,
  )
  shift = 1
  while shift < time:  # Cumulative maximum over time.
    earlier = tf.pad(begin[:-shift], [[shift, 0], [0, 0]])
    begin, shift = tf.maximum(begin, earlier), 2 * shift
  times = tf.range(time)[:, None] + tf.range(stack)  # [T, stack]
  times = tf.maximum(times[:, None], begin[..., None])
  return times * num_envs + tf.range(num_envs)[:, None]
