"""Pink noise: random numbers that persist over several steps.

White noise rarely moves an agent far, because its effects cancel out. With pink
noise, all time scales have equal power, so actions keep their direction for up
to a hundred steps.
"""

import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents.networks import action_distribution
from agents.ops import random

# Numbers are redrawn every 1, 2, 4, ..., 128 steps.
_OCTAVES = 8


class PinkNoise:
  """Noise for an action distribution that samples by normal numbers.

  Each number is the scaled sum of `_OCTAVES` normal numbers, and number k is
  redrawn every 2^k steps (Voss's algorithm; Gardner 1978, "White and brown
  music, fractal curves and one-over-f fluctuations"). The noise of each step
  alone has a standard normal distribution. Like Hollenstein et al. (2024), the
  algorithm ignores that the noise of different steps is dependent.

  Args:
    distribution: Distribution over actions. Noise that is not normal stays
      white.
    run_seed: Seed of the run.

  Raises:
    ConfigError: If no noise is normal, as with discrete actions.
  """

  def __init__(self, distribution: action_distribution.ActionDistribution, run_seed: int) -> None:
    self._distribution = distribution
    self._seeds = [random.stream(run_seed, f"act octave {octave}") for octave in range(_OCTAVES)]
    self._is_normal = np.concatenate(
      [np.full(size, kind == "normal") for kind, size in distribution.noise_kinds]
    )
    if not self._is_normal.any():
      raise config_lib.ConfigError(
        "algorithm.action_noise=pink needs Gaussian actions, but this task has "
        f"{type(distribution).__name__} actions. Set algorithm.action_noise=white."
      )

  def __call__(self, step_counter: tf.Tensor, num_actions: int) -> tf.Tensor:
    """Returns noise of shape [num_actions, noise_size].

    Args:
      step_counter: Number of batched steps so far, int64.
      num_actions: Number of actions to sample.
    """
    # --8<-- [start:pink]
    octaves = [
      self._distribution.noise(num_actions, random.key(seed, step_counter // 2**octave))
      for octave, seed in enumerate(self._seeds)
    ]
    pink = tf.add_n(octaves) / len(octaves) ** 0.5
    return tf.where(self._is_normal, pink, octaves[0])
    # --8<-- [end:pink]
