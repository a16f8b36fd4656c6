"""Compares pink noise with its definition and its spectrum with 1/f."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import config as config_lib
from agents.networks import distribution_for_space, pink_noise
from agents.ops import random


def _distribution(space):
  return distribution_for_space.make(space, config_lib.Network())


_BOX = _distribution(gymnasium.spaces.Box(-1, 1, (3,), np.float32))


@pytest.fixture(scope="module")
def noise():
  """Noise of 8 environments in 4,096 steps, of shape [4096, 8, 3]."""
  pink = pink_noise.PinkNoise(_BOX, 0)
  draw = tf.function(
    lambda: tf.map_fn(
      lambda step: pink(step, 8), tf.range(4096, dtype=tf.int64), fn_output_signature=tf.float32
    )
  )
  return draw().numpy()


def test_noise_is_the_scaled_sum_of_octaves():
  pink = pink_noise.PinkNoise(_BOX, 5)
  for step in (0, 1, 127, 128, 1000):
    total = np.zeros([4, 3])
    for octave in range(8):
      stream = random.stream(5, f"act octave {octave}")
      block = step // 2**octave
      total += random.normal([4, 3], random.key(stream, tf.constant(block, tf.int64))).numpy()
    np.testing.assert_allclose(
      pink(tf.constant(step, tf.int64), 4), total / np.sqrt(8), rtol=1e-5, atol=1e-6
    )


def test_each_step_has_a_standard_normal_distribution(noise):
  assert abs(noise.mean()) < 0.05
  assert noise.std() == pytest.approx(1, abs=0.03)
  assert np.mean(noise**4) == pytest.approx(3, abs=0.3)


def test_octave_k_changes_every_2_to_the_k_steps(noise):
  # Two steps share the octaves whose block contains both, each with a
  # correlation of 1/8.
  for distance, shared in ((1, sum(1 - 2.0**-k for k in range(8)) / 8), (128, 0)):
    correlation = np.mean(noise[distance:] * noise[:-distance])
    assert correlation == pytest.approx(shared, abs=0.03), distance


def test_every_time_scale_has_equal_power(noise):
  spectrum = np.mean(np.abs(np.fft.rfft(noise, axis=0)) ** 2, (1, 2))
  frequencies = np.arange(len(spectrum))
  # One octave between two neighboring powers of two.
  power = [
    spectrum[(frequencies >= low) & (frequencies < 2 * low)].sum() for low in (64, 128, 256, 512)
  ]
  assert max(power) < 2 * min(power)


def test_environments_and_dimensions_are_independent(noise):
  columns = noise.reshape(4096, -1)
  correlation = np.corrcoef(columns.T) - np.eye(24)
  # Octaves of 128 steps have only 32 independent blocks.
  assert np.abs(correlation).max() < 0.4


def test_noise_depends_only_on_seed_and_step():
  first, again, other_seed = (pink_noise.PinkNoise(_BOX, seed) for seed in (3, 3, 4))
  step = tf.constant(77, tf.int64)
  np.testing.assert_array_equal(first(step, 5), again(step, 5))
  assert np.all(first(step, 5) != other_seed(step, 5))


def test_noise_of_discrete_parts_stays_white():
  space = gymnasium.spaces.Dict(
    {"button": gymnasium.spaces.Discrete(4), "stick": gymnasium.spaces.Box(-1, 1, (2,))}
  )
  distribution = _distribution(space)
  pink = pink_noise.PinkNoise(distribution, 0)
  steps = [pink(tf.constant(step, tf.int64), 2000).numpy() for step in (128, 129)]
  white = [kind != "normal" for kind, size in distribution.noise_kinds for _ in range(size)]
  assert white == [True] * 4 + [False] * 2
  octave = distribution.noise(
    2000, random.key(random.stream(0, "act octave 0"), tf.constant(128, tf.int64))
  )
  np.testing.assert_array_equal(steps[0][:, :4], octave[:, :4])
  for column in range(6):
    correlation = np.corrcoef(steps[0][:, column], steps[1][:, column])[0, 1]
    assert correlation == pytest.approx(0 if column < 4 else 7 / 8, abs=0.08)


@pytest.mark.parametrize("space", [gymnasium.spaces.Discrete(3), gymnasium.spaces.MultiBinary(2)])
def test_actions_without_normal_noise_are_an_error(space):
  with pytest.raises(config_lib.ConfigError, match="algorithm.action_noise=white"):
    pink_noise.PinkNoise(_distribution(space), 0)
