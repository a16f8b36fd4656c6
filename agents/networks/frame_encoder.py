"""Encodes observations that contain images or consist of several frames."""

import gymnasium
import tensorflow as tf

from agents import spaces, types
from agents.networks import observation_encoder, observation_moments


class FrameEncoder(observation_encoder.ObservationEncoder):
  """Adds images in [0, 1] to the vectors, and concatenates stacked frames.

  A uint8 space of shape [H, W], [H, W, C] or [C, H, W] with at least 36 x 36
  pixels contains images. Smaller uint8 spaces are part of the vectors.

  Args:
    space: Observation space.
    make_moments: See `ObservationEncoder`.
    clip: Bound of the absolute value of normalized numbers.
    stack: Number of frames in an observation; 0 if frames are not stacked.
  """

  def __init__(
    self,
    space: gymnasium.Space,
    make_moments: observation_moments.MakeMoments | None,
    clip: float,
    stack: int,
  ) -> None:
    super().__init__(space, make_moments, clip)
    self._leaves = spaces.leaves(space)
    if stack:
      self.stack = stack
      self.example = tf.stack([self.example] * stack, 1)

  def images(self, observ: tf.Tensor) -> list[tf.Tensor]:
    """Returns one tensor of shape [N, H, W, C] in [0, 1] per image space.

    Args:
      observ: Observations of shape [N, ...].
    """
    return [_scale(leaf, image) for leaf, image in self._images(observ)]

  def inputs(self, observ: tf.Tensor | types.FrameIndices) -> tuple[tf.Tensor, ...]:
    """Returns vectors and images.

    Args:
      observ: Observations of shape [N, ...], or [N, stack, ...] if they consist
        of several frames.

    Returns:
      Tuple of the concatenated vectors of all frames, [N, frames * size], and
      one tensor per image space, [N, H, W, frames * C].
    """
    if isinstance(observ, types.FrameIndices):
      return self._gathered_inputs(observ)
    if not self.stack:
      return self(observ), *self.images(observ)
    frames = tf.reshape(observ, [-1, *observ.shape[2:]])
    rows = tf.shape(observ)[0] if observ.shape[0] is None else observ.shape[0]
    vector = tf.reshape(self(frames), [rows, self.stack * self.size])
    return vector, *(
      _scale(leaf, _concat_channels(image, self.stack)) for leaf, image in self._images(frames)
    )

  @tf.function(jit_compile=True, autograph=False)
  def _gathered_inputs(self, observ: types.FrameIndices) -> tuple[tf.Tensor, ...]:
    """Returns vectors and images in one pass over the frames.

    Separate operations would gather, transpose and convert the frames in turn,
    which takes several times as long.
    """
    return self.inputs(observ.gather_frames())

  def _images(self, observ: tf.Tensor) -> list[tuple[spaces.Leaf, tf.Tensor]]:
    """Returns the leaves with images, and their bytes of shape [N, H, W, C]."""
    return [
      (leaf, _channels_last(leaf, part))
      for leaf, part in zip(self._leaves, self._unpack(observ))
      if leaf.is_image
    ]

  def clipped(self, observ: tf.Tensor | types.FrameIndices) -> tf.Tensor:
    """See `ObservationEncoder.clipped`; uses only the latest frames."""
    return super().clipped(_latest(observ))

  def update(self, observ: tf.Tensor | types.FrameIndices, valid: tf.Tensor) -> None:
    """See `ObservationEncoder.update`; uses only the latest frames."""
    super().update(_latest(observ), valid)


def make(
  space: gymnasium.Space,
  make_moments: observation_moments.MakeMoments | None,
  clip: float,
  stack: int,
  frame_indices: bool,
) -> observation_encoder.ObservationEncoder:
  """Returns the encoder for a space.

  Args:
    space: Observation space.
    make_moments: See `observation_encoder.ObservationEncoder`.
    clip: Bound of the absolute value of normalized numbers.
    stack: Number of recent observations that a policy receives at each step.
    frame_indices: Whether images are stored as `types.FrameIndices`, even if
      `stack` is 1.
  """
  has_images = any(leaf.is_image for leaf in spaces.leaves(space))
  if stack == 1 and not has_images:
    return observation_encoder.ObservationEncoder(space, make_moments, clip)
  return FrameEncoder(space, make_moments, clip, stack if stack > 1 or frame_indices else 0)


def _latest(observ: tf.Tensor | types.FrameIndices) -> tf.Tensor:
  """Returns the latest frame of each observation, to count each frame once."""
  if isinstance(observ, types.FrameIndices):
    return tf.gather(observ.frames, observ.index[:, -1])
  return observ


def _channels_last(leaf: spaces.Leaf, part: tf.Tensor) -> tf.Tensor:
  """Converts the values of an image space to shape [N, H, W, C]."""
  if len(leaf.shape) == 2:
    return part[..., None]
  if leaf.shape[0] < min(leaf.shape[1:]):
    return tf.transpose(part, [0, 2, 3, 1])
  return part


def _concat_channels(images: tf.Tensor, stack: int) -> tf.Tensor:
  """Converts images [N * stack, H, W, C] to [N, H, W, stack * C]."""
  height, width, channels = images.shape[1:]
  stacks = tf.reshape(images, [-1, stack, height, width, channels])
  # Bytes move faster than the floats that `_scale` returns.
  return tf.reshape(tf.transpose(stacks, [0, 2, 3, 1, 4]), [-1, height, width, stack * channels])


def _scale(leaf: spaces.Leaf, image: tf.Tensor) -> tf.Tensor:
  """Converts the values of an image space to [0, 1]."""
  assert isinstance(leaf.space, gymnasium.spaces.Box)
  low, high = float(leaf.space.low.min()), float(leaf.space.high.max())
  return (tf.cast(image, tf.float32) - low) / max(high - low, 1)
