"""Tests the encoding of images and of stacked frames."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import types
from agents.networks import frame_encoder, observation_encoder, observation_moments
from tests.support import modes


@pytest.mark.parametrize("high", [1, 255])
def test_images_are_scaled_by_their_bounds(high):
  space = gymnasium.spaces.Box(0, high, (36, 40), np.uint8)
  encoder = frame_encoder.FrameEncoder(
    space, make_moments=observation_moments.make_running, clip=10.0, stack=0
  )
  observ = np.zeros((1, 36, 40), np.uint8)
  observ[0, 3, 4] = high
  (image,) = encoder.images(tf.constant(observ))
  assert image.shape == (1, 36, 40, 1)
  np.testing.assert_array_equal(image[0, ..., 0], observ[0] > 0)


_VECTOR = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
_IMAGE = gymnasium.spaces.Box(0, 255, (36, 40), np.uint8)


@pytest.mark.parametrize(
  "space, stack, frame_indices, kind, expected",
  [
    (_VECTOR, 1, True, observation_encoder.ObservationEncoder, 0),
    (_VECTOR, 3, False, frame_encoder.FrameEncoder, 3),
    (_IMAGE, 1, True, frame_encoder.FrameEncoder, 1),
    (_IMAGE, 1, False, frame_encoder.FrameEncoder, 0),
    (_IMAGE, 4, True, frame_encoder.FrameEncoder, 4),
  ],
)
def test_only_images_and_stacks_need_a_frame_encoder(space, stack, frame_indices, kind, expected):
  encoder = frame_encoder.make(space, None, 10.0, stack, frame_indices)
  assert type(encoder) is kind and encoder.stack == expected


@modes.eager_and_compiled
def test_inputs_concatenate_vectors_and_channels_of_frames(prepare):
  space = gymnasium.spaces.Box(0, 255, (36, 37, 2), np.uint8)
  encoder = frame_encoder.FrameEncoder(space, None, 10.0, stack=3)
  frames = np.random.default_rng(0).integers(0, 256, (5, 36, 37, 2)).astype(np.uint8)
  index = np.array([[0, 1, 4], [2, 2, 3]], np.int32)
  inputs = prepare(lambda frames, index: encoder.inputs(types.FrameIndices(frames, index)))
  vector, image = inputs(tf.constant(frames), tf.constant(index))
  assert vector.shape == (2, 0) and image.shape == (2, 36, 37, 6)
  for row in range(2):
    for position in range(3):
      np.testing.assert_allclose(
        image[row, ..., 2 * position : 2 * position + 2],
        frames[index[row, position]] / 255,
        rtol=1e-6,
      )
  encoder = frame_encoder.FrameEncoder(_VECTOR, None, 10.0, stack=3)
  numbers = tf.range(10.0)
  (vector,) = encoder.inputs(types.FrameIndices(tf.reshape(numbers, [5, 2]), tf.constant(index)))
  np.testing.assert_array_equal(vector, [[0, 1, 2, 3, 8, 9], [4, 5, 4, 5, 6, 7]])


def test_moments_count_only_the_latest_frames():
  encoder = frame_encoder.FrameEncoder(_VECTOR, observation_moments.make_running, 10.0, stack=2)
  observ = types.FrameIndices(
    tf.constant([[99.0, 99.0], [1.0, 2.0], [3.0, 6.0]]), tf.constant([[0, 1], [1, 2], [2, 0]])
  )
  encoder.update(observ, tf.constant([True, True, False]))
  np.testing.assert_allclose(encoder.moments.mean, [2, 4])
  np.testing.assert_allclose(encoder.moments.std, [1, 2])
  assert encoder.moments.count.numpy() == 2


def test_map_tensors_selects_rows_and_keeps_the_frames():
  observ = types.FrameIndices(tf.range(6.0)[:, None], tf.constant([[0, 1], [1, 2], [4, 5]]))
  assert observ.shape == (3, 2, 1)
  rows = types.map_tensors(lambda tensor: tensor[::-2], {"a": observ, "b": tf.range(3)})
  np.testing.assert_array_equal(rows["a"].gather_frames()[..., 0], [[4, 5], [0, 1]])
  assert rows["a"].frames is observ.frames
  assert rows["b"].numpy().tolist() == [2, 0]
