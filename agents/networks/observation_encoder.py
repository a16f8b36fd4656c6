"""From observations of any supported space to what networks see."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import tensorflow as tf

from agents import spaces
from agents.networks import normalization
from agents.ops import packing


class ObservationEncoder:
  """Makes a vector of all but images, and images with channels.

  Numbers are normalized, images scaled to [0, 1], choices one-hot encoded.
  Bytes of shape [H, W], [H, W, C] or [C, H, W] are images, from 36 x 36 on;
  smaller ones join the vector. What lies in a Dict or Tuple is taken apart.

  Args:
    space: Observation space.
    normalized: Whether numbers are normalized by their running moments.
    clip: Bound of the normalized numbers.
    stack: How many observations networks see at a time.
    by_frames: Whether images come in stacks also where these are of one.
  """

  def __init__(self, space: gymnasium.Space, normalized: bool, clip: float,
               stack: int = 1, by_frames: bool = False):
    self._leaves = spaces.leaves(space)
    images = any(leaf.is_image for leaf in self._leaves)
    # Observations are stacks of so many; 0: they are themselves.
    self.stack = stack if stack > 1 or by_frames and images else 0
    self._composite = spaces.composite(space)
    self._clip = clip
    numbers = sum(math.prod(leaf.shape) for leaf in self._leaves
                  if _is_number(leaf))
    self.moments = (normalization.RunningMoments((numbers,), "observ")
                    if numbers and normalized else None)
    kind, shape = spaces.dtype(space)
    # One observation, of shape [1, ...].
    self.example = tf.constant(spaces.as_bytes(np.zeros([1, *shape], kind)))
    self.size = int(self(self.example).shape[-1])  # Of the vectors.

  def __call__(self, observ: tf.Tensor) -> tf.Tensor:
    """Map observations of shape [N, ...] to vectors of shape [N, size]."""
    parts = self._parts(observ)
    vectors = [_encode(leaf, part) for leaf, part in zip(
        self._leaves, parts, strict=True)
               if not (_is_number(leaf) or leaf.is_image)]
    if any(_is_number(leaf) for leaf in self._leaves):
      numbers = self._numbers(parts)
      vectors.insert(0, self.moments.normalize(numbers, self._clip)
                     if self.moments else numbers)
    if not vectors:
      return tf.zeros([_rows(observ), 0])
    return tf.concat(vectors, -1) if len(vectors) > 1 else vectors[0]

  def images(self, observ: tf.Tensor) -> list[tf.Tensor]:
    """Return all images, of shape [N, H, W, C] and in [0, 1]."""
    return [_image(leaf, part) for leaf, part in zip(
        self._leaves, self._parts(observ), strict=True) if leaf.is_image]

  def inputs(self, observ: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Return vectors and images, all that networks see.

    Args:
      observ: Observations of shape [N, ...]; with a stack, [N, stack, ...].
    Returns:
      Vectors one after the other, [N, stack * size], and images with the
      channels of one after the other.
    """
    if not self.stack:
      return self(observ), *self.images(observ)
    each = tf.reshape(observ, [-1, *observ.shape[2:]])
    vector = tf.reshape(self(each), [_rows(observ), self.stack * self.size])
    return vector, *(tf.concat(tf.unstack(tf.reshape(
        image, [-1, self.stack, *image.shape[1:]]), axis=1), -1)
                     for image in self.images(each))

  def clipped(self, observ: tf.Tensor) -> tf.Tensor:
    """Return which share of their numbers is clipped, of shape [N]."""
    assert self.moments
    numbers = self.moments.normalize(
        self._numbers(self._parts(observ)), self._clip)
    at_bound = tf.abs(numbers) >= self._clip
    return tf.reduce_mean(tf.cast(at_bound, tf.float32), -1)

  def update(self, observ: tf.Tensor, valid: tf.Tensor):
    """Add observations of shape [N, ...], where `valid`, to the moments."""
    if self.moments:
      self.moments.update(self._numbers(self._parts(observ)), valid)

  def _parts(self, observ: tf.Tensor) -> list[tf.Tensor]:
    return packing.unpack(observ, self._leaves) if self._composite else [observ]

  def _numbers(self, parts: list[tf.Tensor]) -> tf.Tensor:
    """Return all that is neither image nor choice, of shape [N, numbers]."""
    found = [_number(leaf, part) for leaf, part in zip(
        self._leaves, parts, strict=True) if _is_number(leaf)]
    return tf.concat(found, -1) if len(found) > 1 else found[0]


def _is_number(leaf: spaces.Leaf) -> bool:
  return isinstance(leaf.space, gymnasium.spaces.Box) and not (
      leaf.is_image or leaf.dtype == np.bool_)


def _number(leaf: spaces.Leaf, part: tf.Tensor) -> tf.Tensor:
  """Return numbers of shape [N, size]; bytes within [0, 1]."""
  if leaf.dtype != np.uint8:
    return _flat(part)
  assert isinstance(leaf.space, gymnasium.spaces.Box)
  low, high = (np.float32(bound).ravel() for bound in (
      leaf.space.low, leaf.space.high))
  return (_flat(part) - low) / np.maximum(high - low, 1)


def _encode(leaf: spaces.Leaf, part: tf.Tensor) -> tf.Tensor:
  """Return what is no number as numbers, of shape [N, size]."""
  space = leaf.space
  if isinstance(space, gymnasium.spaces.Discrete):
    return tf.one_hot(part - int(space.start), int(space.n))
  if isinstance(space, gymnasium.spaces.MultiDiscrete):
    choices = tf.reshape(part - space.start, [-1, space.nvec.size])
    return tf.concat([tf.one_hot(choices[:, index], int(amount)) for
                      index, amount in enumerate(space.nvec.ravel())], -1)
  return _flat(part)


def _image(leaf: spaces.Leaf, part: tf.Tensor) -> tf.Tensor:
  if len(leaf.shape) == 2:
    part = part[..., None]
  elif leaf.shape[0] < min(leaf.shape[1:]):
    part = tf.transpose(part, [0, 2, 3, 1])
  assert isinstance(leaf.space, gymnasium.spaces.Box)
  low, high = (float(bound) for bound in (
      leaf.space.low.min(), leaf.space.high.max()))
  return (tf.cast(part, tf.float32) - low) / max(high - low, 1)


def _rows(observ: tf.Tensor) -> int | tf.Tensor:
  amount = observ.shape[0]
  return tf.shape(observ)[0] if amount is None else amount


def _flat(part: tf.Tensor) -> tf.Tensor:
  size = math.prod(part.shape[1:])
  return tf.cast(tf.reshape(part, [-1, size]), tf.float32)
