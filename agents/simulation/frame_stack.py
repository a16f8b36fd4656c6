"""The last few observations of an episode as one, none of them stored twice.

Mnih et al. (2015) show a policy four pictures at a time. Here an episode's
first observation stands for those that would be before it. While acting, the
last ones are remembered; while learning, a step is a row of numbers of frames.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from agents import types

FULL = ("More than one step in sixteen of a collection truncated its episode, "
        "which there is no room for with pictures or network.frame_stack: if "
        "episodes have a time limit of less than 16 steps, set env.max_length "
        "to it.")


class Recent(NamedTuple):
  """What is remembered of N running episodes."""

  observ: tf.Tensor  # [N, amount - 1, ...]
  begun: tf.Tensor  # [N] bool, whether there are any.


def nothing(example: tf.Tensor, batch: int, amount: int) -> Recent:
  """Return what is remembered where episodes begin.

  Args:
    example: An observation, [1, ...].
    batch: Number of episodes, N.
    amount: Of observations that make one.
  """
  shape = [batch, amount - 1, *example.shape[1:]]
  return Recent(tf.zeros(shape, example.dtype), tf.zeros([batch], tf.bool))


def stack(observ: tf.Tensor, recent: Recent) -> tuple[tf.Tensor, Recent]:
  """Return observations [N, amount, ...], the latest one last, and what is to
  be remembered."""
  begun = tf.ones_like(recent.begun)
  if not recent.observ.shape[1]:
    return observ[:, None], Recent(recent.observ, begun)
  others = [1] * (observ.shape.rank - 1)
  before = _where(
      tf.reshape(recent.begun, [-1, 1, *others]), recent.observ,
      tf.repeat(observ[:, None], recent.observ.shape[1], 1))
  stacked = tf.concat([before, observ[:, None]], 1)
  return stacked, Recent(stacked[:, 1:], begun)


def _where(condition: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """`tf.where`, of bytes too, which TensorFlow Lite has not."""
  if x.dtype != tf.uint8:
    return tf.where(condition, x, y)
  return tf.cast(tf.where(
      condition, tf.cast(x, tf.int32), tf.cast(y, tf.int32)), tf.uint8)


class Film(NamedTuple):
  """All frames of a collection, and which of them a step is made of."""

  frames: tf.Tensor  # [F, ...], each once.
  step: tf.Tensor  # [T, B, amount] int32, numbers of frames.
  successor: tf.Tensor  # [T, B, amount] int32


def film(transitions: types.Transition, recent: Recent, following: tf.Tensor,
         room: int) -> Film:
  """Return the steps of a collection by the numbers of their frames.

  What follows a terminated step is never asked for, and is any frame.

  Args:
    transitions: Tensors of shape [T, B, ...].
    recent: What was remembered before.
    following: Observations to act on next, [B, ...].
    room: For the last observations of truncated episodes; an error is raised
      where it does not do.
  """
  ended = transitions.terminated | transitions.truncated
  time, batch = ended.shape
  amount = recent.observ.shape[1] + 1
  before = amount - 1
  # Where the episode of each step began, as far as that is known.
  begin = tf.concat([
      tf.where(recent.begun, 0, before)[None],
      tf.where((ended | ~transitions.valid)[:-1],
               before + tf.range(1, time)[:, None], 0)], 0)
  shift = 1
  while shift < time:  # To the latest one up to each step.
    earlier = tf.pad(begin[:-shift], [[shift, 0], [0, 0]])
    begin, shift = tf.maximum(begin, earlier), 2 * shift
  places = tf.range(time)[:, None] + tf.range(amount)  # [T, amount]
  places = tf.maximum(places[:, None], begin[..., None])
  step = places * batch + tf.range(batch)[:, None]
  # Only truncated episodes need a successor that is not in the timeline.
  cut = transitions.truncated & ~transitions.terminated
  finals = tf.boolean_mask(
      transitions.final_observ, tf.boolean_mask(cut, ended))
  enough = tf.debugging.Assert(tf.shape(finals)[0] <= room, [FULL])
  with tf.control_dependencies([enough] if enough is not None else []):
    finals = tf.pad(finals, [[0, room - tf.shape(finals)[0]]] + [
        [0, 0]] * (finals.shape.rank - 1))
  finals = tf.ensure_shape(finals, [room, *finals.shape[1:]])
  number = tf.reshape(tf.cumsum(tf.reshape(
      tf.cast(cut, tf.int32), [-1]), exclusive=True), [time, batch])
  latest = tf.where(
      cut, (before + time + 1) * batch + number,
      (before + 1 + tf.range(time)[:, None]) * batch + tf.range(batch))
  # One after the other in time, `batch` in each place of time.
  known = tf.transpose(
      recent.observ, [1, 0, *range(2, recent.observ.shape.rank)])
  timeline = [tf.reshape(tensor, [-1, *following.shape[1:]])
              for tensor in (known, transitions.observ, following)]
  return Film(tf.concat([*timeline, finals], 0), step,
              tf.concat([step[..., 1:], latest[..., None]], -1))
