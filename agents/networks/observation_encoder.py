"""Encodes observations of any supported space as vectors."""

import functools
import math
from collections.abc import Callable, Sequence

import gymnasium
import numpy as np
import tensorflow as tf

from agents import spaces
from agents.networks import observation_moments
from agents.ops import tensor_bytes


class ObservationEncoder:
  """Concatenates normalized numbers and one-hot encoded choices.

  `frame_encoder.FrameEncoder` adds images and stacks of frames.

  Args:
    space: Observation space.
    make_moments: Makes the moments by which numbers are normalized; None if
      numbers are not normalized.
    clip: Bound of the absolute value of normalized numbers.

  Attributes:
    stack: Number of frames in an observation; 0 if frames are not stacked.
    moments: Moments of the numbers; None without normalization.
    example: Batch of one zero observation, of shape [1, ...], or of shape
      [1, stack, ...] if frames are stacked.
    size: Length of the vector of one frame.
  """

  stack = 0

  def __init__(
    self, space: gymnasium.Space, make_moments: observation_moments.MakeMoments | None, clip: float
  ) -> None:
    leaves = spaces.leaves(space)
    self._clip = clip
    self._unpack = (
      functools.partial(tensor_bytes.unpack, leaves=leaves)
      if spaces.composite(space)
      else lambda observ: [observ]
    )
    # Pairs of a leaf's index in `leaves` and the function that encodes it.
    self._numbers = [
      (index, _encoder(leaf)) for index, leaf in enumerate(leaves) if _is_number(leaf)
    ]
    self._choices = [
      (index, _encoder(leaf))
      for index, leaf in enumerate(leaves)
      if not (_is_number(leaf) or leaf.is_image)
    ]
    if not (self._numbers or self._choices):  # All leaves are images.
      self._choices = [(0, _empty_vectors)]
    num_numbers = sum(math.prod(leaf.shape) for leaf in leaves if _is_number(leaf))
    self.moments = make_moments(num_numbers) if num_numbers and make_moments else None
    dtype, shape = spaces.dtype(space)
    self.example = tf.constant(spaces.as_bytes(np.zeros([1, *shape], dtype)))
    self.size = int(self(self.example).shape[-1])

  def __call__(self, observ: tf.Tensor) -> tf.Tensor:
    """Maps observations of shape [N, ...] to vectors of shape [N, size]."""
    leaves = self._unpack(observ)
    vectors = [encode(leaves[index]) for index, encode in self._choices]
    if self._numbers:
      numbers = self._concat_numbers(leaves)
      if self.moments:
        numbers = self.moments.normalize(numbers, self._clip)
      vectors.insert(0, numbers)
    return tf.concat(vectors, -1) if len(vectors) > 1 else vectors[0]

  def inputs(self, observ: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Returns a tuple of the vectors, [N, size], and any images.

    Args:
      observ: Observations of shape [N, ...].
    """
    return (self(observ),)

  def clipped(self, observ: tf.Tensor) -> tf.Tensor:
    """Returns the share of clipped numbers in each observation, [N].

    Args:
      observ: Observations of shape [N, ...].
    """
    assert self.moments
    numbers = self.moments.normalize(self._concat_numbers(self._unpack(observ)), self._clip)
    at_bound = tf.abs(numbers) >= self._clip
    return tf.reduce_mean(tf.cast(at_bound, tf.float32), -1)

  def update(self, observ: tf.Tensor, valid: tf.Tensor) -> None:
    """Adds observations to the moments, unless `moments` is None.

    Args:
      observ: Observations of shape [N, ...].
      valid: Bool tensor of shape [N]; rows with false are ignored.
    """
    if self.moments:
      self.moments.update(self._concat_numbers(self._unpack(observ)), valid)

  def _concat_numbers(self, leaves: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the unnormalized numbers of all leaves, [N, num_numbers]."""
    numbers = [encode(leaves[index]) for index, encode in self._numbers]
    return tf.concat(numbers, -1) if len(numbers) > 1 else numbers[0]


def columns(space: gymnasium.Space) -> dict[tuple[str, ...], range]:
  """Returns the columns of each leaf in the vector of one frame, by path.

  Args:
    space: Observation space.
  """
  vectors = [leaf for leaf in spaces.leaves(space) if not leaf.is_image]
  result: dict[tuple[str, ...], range] = {}
  end = 0
  for leaf in sorted(vectors, key=_is_number, reverse=True):  # Numbers come first.
    begin, end = end, end + int(_encoder(leaf)(tf.zeros([1, *leaf.shape], leaf.dtype)).shape[-1])
    result[leaf.path] = range(begin, end)
  return result


def _is_number(leaf: spaces.Leaf) -> bool:
  return isinstance(leaf.space, gymnasium.spaces.Box) and not (
    leaf.is_image or leaf.dtype == np.bool_
  )


def _encoder(leaf: spaces.Leaf) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns a function that maps values of a leaf to vectors, [N, size].

  The function scales bytes to [0, 1], encodes choices as one-hot vectors, and
  flattens other values.
  """
  space = leaf.space
  if isinstance(space, gymnasium.spaces.Box) and leaf.dtype == np.uint8:
    low, high = (np.float32(bound).ravel() for bound in (space.low, space.high))
    return lambda part: (_flatten(part) - low) / np.maximum(high - low, 1)
  if isinstance(space, gymnasium.spaces.Discrete):
    start, size = int(space.start), int(space.n)
    return lambda choice: tf.one_hot(choice - start, size)
  if isinstance(space, gymnasium.spaces.MultiDiscrete):
    return functools.partial(_one_hot_each, start=space.start, sizes=space.nvec.ravel().tolist())
  return _flatten


def _one_hot_each(choices: tf.Tensor, start: np.ndarray, sizes: list[int]) -> tf.Tensor:
  choices = tf.reshape(choices - start, [-1, len(sizes)])
  return tf.concat([tf.one_hot(choices[:, index], size) for index, size in enumerate(sizes)], -1)


def _empty_vectors(image: tf.Tensor) -> tf.Tensor:
  # TensorFlow Lite does not support an empty slice of the image.
  rows = tf.shape(image)[0] if image.shape[0] is None else image.shape[0]
  return tf.zeros([rows, 0])


def _flatten(part: tf.Tensor) -> tf.Tensor:
  size = math.prod(part.shape[1:])
  return tf.cast(tf.reshape(part, [-1, size]), tf.float32)
