"""Encodes observations of any supported space as vectors."""

import functools
import math
from collections.abc import Callable, Sequence

import gymnasium
import numpy as np
import tensorflow as tf

from agents import spaces
from agents.networks import normalization
from agents.ops import tensor_bytes


class ObservationEncoder:
  """Concatenates normalized numbers and one-hot encoded choices.

  `frame_encoder.FrameEncoder` adds images and stacks of frames.

  Args:
    space: Observation space.
    normalize: Whether numbers are normalized by their running moments.
    clip: Bound of the absolute value of normalized numbers.

  Attributes:
    stack: Number of frames in an observation; 0 if frames are not stacked.
    moments: Running moments of the numbers; None without normalization.
    example: One observation, of shape [1, ...], or [1, stack, ...] if it
      consists of several frames.
    size: Length of the vectors.
  """

  stack = 0

  def __init__(self, space: gymnasium.Space, normalize: bool, clip: float):
    leaves = spaces.leaves(space)
    self._clip = clip
    self._unpack = (
        functools.partial(tensor_bytes.unpack, leaves=leaves)
        if spaces.composite(space) else lambda observ: [observ])
    # Positions of leaves, and functions that encode them.
    self._numbers = [(position, _encoder(leaf))
                     for position, leaf in enumerate(leaves)
                     if _is_number(leaf)]
    self._choices = [(position, _encoder(leaf))
                     for position, leaf in enumerate(leaves)
                     if not (_is_number(leaf) or leaf.is_image)]
    if not (self._numbers or self._choices):  # The vector is empty.
      self._choices = [(0, _empty_vectors)]
    num_numbers = sum(math.prod(leaf.shape) for leaf in leaves
                      if _is_number(leaf))
    self.moments = (normalization.RunningMoments((num_numbers,), "observ")
                    if num_numbers and normalize else None)
    dtype, shape = spaces.dtype(space)
    self.example = tf.constant(spaces.as_bytes(np.zeros([1, *shape], dtype)))
    self.size = int(self(self.example).shape[-1])

  def __call__(self, observ: tf.Tensor) -> tf.Tensor:
    """Maps observations of shape [N, ...] to vectors of shape [N, size]."""
    leaves = self._unpack(observ)
    vectors = [encode(leaves[position]) for position, encode in self._choices]
    if self._numbers:
      numbers = self._concat_numbers(leaves)
      if self.moments:
        numbers = self.moments.normalize(numbers, self._clip)
      vectors.insert(0, numbers)
    return tf.concat(vectors, -1) if len(vectors) > 1 else vectors[0]

  def inputs(self, observ: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Returns the vectors, [N, size], followed by images if there are any.

    Args:
      observ: Observations of shape [N, ...].
    """
    return (self(observ),)

  def clipped(self, observ: tf.Tensor) -> tf.Tensor:
    """Returns the share of clipped numbers of each observation, of shape [N].

    Args:
      observ: Observations of shape [N, ...].
    """
    assert self.moments
    numbers = self.moments.normalize(
        self._concat_numbers(self._unpack(observ)), self._clip)
    at_bound = tf.abs(numbers) >= self._clip
    return tf.reduce_mean(tf.cast(at_bound, tf.float32), -1)

  def update(self, observ: tf.Tensor, valid: tf.Tensor):
    """Adds observations to the moments, if there are any.

    Args:
      observ: Observations of shape [N, ...].
      valid: Bool tensor of shape [N]; other rows are ignored.
    """
    if self.moments:
      self.moments.update(self._concat_numbers(self._unpack(observ)), valid)

  def _concat_numbers(self, leaves: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns numbers that can be normalized, of shape [N, numbers]."""
    numbers = [encode(leaves[position]) for position, encode in self._numbers]
    return tf.concat(numbers, -1) if len(numbers) > 1 else numbers[0]


def _is_number(leaf: spaces.Leaf) -> bool:
  return isinstance(leaf.space, gymnasium.spaces.Box) and not (
      leaf.is_image or leaf.dtype == np.bool_)


def _encoder(leaf: spaces.Leaf) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns a function from values of a leaf to vectors of shape [N, size].

  Bytes map to [0, 1], and choices to one-hot vectors.
  """
  space = leaf.space
  if isinstance(space, gymnasium.spaces.Box) and leaf.dtype == np.uint8:
    low, high = (np.float32(bound).ravel() for bound in (space.low, space.high))
    return lambda part: (_flatten(part) - low) / np.maximum(high - low, 1)
  if isinstance(space, gymnasium.spaces.Discrete):
    start, size = int(space.start), int(space.n)
    return lambda choice: tf.one_hot(choice - start, size)
  if isinstance(space, gymnasium.spaces.MultiDiscrete):
    return functools.partial(
        _one_hot_each, start=space.start, sizes=space.nvec.ravel().tolist())
  return _flatten


def _one_hot_each(choices: tf.Tensor, start: np.ndarray, sizes: list[int]
                  ) -> tf.Tensor:
  choices = tf.reshape(choices - start, [-1, len(sizes)])
  return tf.concat([tf.one_hot(choices[:, index], size)
                    for index, size in enumerate(sizes)], -1)


def _empty_vectors(image: tf.Tensor) -> tf.Tensor:
  # A slice of the image would fail in TensorFlow Lite.
  rows = tf.shape(image)[0] if image.shape[0] is None else image.shape[0]
  return tf.zeros([rows, 0])


def _flatten(part: tf.Tensor) -> tf.Tensor:
  size = math.prod(part.shape[1:])
  return tf.cast(tf.reshape(part, [-1, size]), tf.float32)
