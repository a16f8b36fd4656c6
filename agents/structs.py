"""The shapes that travel through the graph. T: steps, B: environments."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Transition(NamedTuple):
  """One environment step for all B environments, or T of them: [T, B, ...]."""

  observ: tf.Tensor  # [B, ...], before the action.
  action: tf.Tensor  # [B, ...] float32 or int64, as sampled (not clipped).
  reward: tf.Tensor  # [B] float32, as the environment gave it.
  terminated: tf.Tensor  # [B] bool, no future reward exists.
  truncated: tf.Tensor  # [B] bool, time limit: bootstrap from next_observ.
  next_observ: tf.Tensor  # [B, ...], true successor, never a reset.


class Carry(NamedTuple):
  """What one step of the simulation hands to the next."""

  observ: tf.Tensor  # [B, ...], to act on.
  score: tf.Tensor  # [B] float32, the running episode's rewards so far.
  length: tf.Tensor  # [B] int32, the running episode's steps so far.
  clock: tf.Tensor  # [] int64, batched steps so far; counts random numbers.


class Episodes(NamedTuple):
  """Scores and lengths at every step; final where `ended`."""

  ended: tf.Tensor  # [T, B] bool
  score: tf.Tensor  # [T, B] float32
  length: tf.Tensor  # [T, B] int32
