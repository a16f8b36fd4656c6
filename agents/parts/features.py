"""From observations of any supported space to vectors for a network."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import tensorflow as tf

from agents.parts import normalize


class Features:
  """Flattens; normalizes floats, scales bytes to [0, 1], one-hot encodes.

  Args:
    space: Observation space, Box or Discrete.
    normalized: Whether floats are normalized by their running moments.
    clip: Bound of the normalized floats.
  """

  def __init__(self, space: gymnasium.Space, normalized: bool, clip: float):
    self._space = space
    self._clip = clip
    if isinstance(space, gymnasium.spaces.Discrete):
      self.size = int(space.n)
    else:
      self.size = math.prod(space.shape or ())
    floats = not isinstance(space, gymnasium.spaces.Discrete) and (
        space.dtype != np.uint8)
    self.moments = (normalize.RunningMoments((self.size,), "observ")
                    if floats and normalized else None)

  def __call__(self, observ: tf.Tensor) -> tf.Tensor:
    """Map observations of shape [N, ...] to features of shape [N, size]."""
    if isinstance(self._space, gymnasium.spaces.Discrete):
      return tf.one_hot(observ - int(self._space.start), self.size)
    flat = tf.reshape(observ, [-1, self.size])
    if flat.dtype == tf.uint8:
      return tf.cast(flat, tf.float32) / 255
    return self.moments.normalize(flat, self._clip) if self.moments else flat

  def clipped(self, observ: tf.Tensor) -> tf.Tensor:
    """Return which share of their features is clipped, of shape [N]."""
    at_bound = tf.abs(self(observ)) >= self._clip
    return tf.reduce_mean(tf.cast(at_bound, tf.float32), -1)

  def update(self, observ: tf.Tensor, valid: tf.Tensor):
    """Add observations of shape [N, ...], where `valid`, to the moments."""
    if self.moments:
      self.moments.update(tf.reshape(observ, [-1, self.size]), valid)
