"""What training roughly costs, by measurements in docs/performance.md."""

from __future__ import annotations

import math

import gymnasium

from agents import config as config_lib
from agents import spaces

_FLOPS = 150e9  # Of two cores, in products of small matrices.
_SECONDS_PER_GRADIENT_STEP = 50e-6  # Whatever its size.
_SECONDS_PER_BATCHED_STEP = 640e-6  # Crossing and inference.
# Multiplications for each pixel of an image, and units behind the last layer.
_CONVOLUTIONS = {"nature": (1300, 512), "impala": (8500, 256)}
_STEPPING_OVERHEAD = 1.2  # Of stepping in workers, against a plain loop.


def learning_seconds(config: config_lib.Config, space: gymnasium.Space,
                     rows: int) -> float:
  """Return the seconds that an update takes on two CPU cores.

  Args:
    config: Says how often the rows are seen, by which networks.
    space: Of observations.
    rows: Steps in the memory.
  """
  epochs = config.algorithm.update_epochs
  return (6 * _products(config, space) * rows * epochs / _FLOPS
          + _SECONDS_PER_GRADIENT_STEP * epochs * _batches(config, rows))


def gpu_pays(config: config_lib.Config, space: gymnasium.Space, rows: int
             ) -> bool:
  """Whether the products of an update take two cores twice as long as a GPU.

  A GPU takes some 5 us to begin each kernel, of which a gradient step has 150,
  and advantages three for each row. This was derived from measurements on a
  CPU, not measured on a GPU.
  """
  epochs = config.algorithm.update_epochs
  estimates = epochs if config.algorithm.recompute_advantages else 1
  cpu = 6 * _products(config, space) * rows * epochs / _FLOPS
  gpu = 5e-6 * (150 * epochs * _batches(config, rows) + 3 * rows * estimates)
  return cpu > 2 * gpu


def training_seconds(config: config_lib.Config, space: gymnasium.Space,
                     rows: int, steps: int, steps_per_second: float,
                     workers: int, episode_length: int) -> float:
  """Return the seconds that training takes, evaluations and all.

  Args:
    config: Of the run.
    space: Of observations.
    rows: Steps in the memory.
    steps: Still to do.
    steps_per_second: Of one environment in a plain loop.
    workers: Processes that step environments, each on a core of its own.
    episode_length: Of an evaluation's episodes; 0 if that isn't known.
  """
  step = _STEPPING_OVERHEAD / steps_per_second
  train = steps * (
      step / workers + _SECONDS_PER_BATCHED_STEP / config.num_envs
      + learning_seconds(config, space, rows) / rows)
  evaluations = steps / config.every("eval_every") * episode_length
  share = math.ceil(config.eval_episodes / workers)
  return train + evaluations * (share * step + _SECONDS_PER_BATCHED_STEP)


def _products(config: config_lib.Config, space: gymnasium.Space) -> int:
  """Return the multiplications that both networks need for a step."""
  network, leaves = config.network, spaces.leaves(space)
  images = [leaf for leaf in leaves if leaf.is_image]
  pixels = sum(math.prod(sorted(leaf.shape)[-2:]) for leaf in images)
  per_pixel, units = _CONVOLUTIONS[network.conv]
  core = pixels * per_pixel
  size = len(images) * units + network.frame_stack * sum(
      _size(leaf) for leaf in leaves if not leaf.is_image)
  if network.recurrent:
    gates = {"gru": 3, "lstm": 4}[network.recurrent]
    core += gates * network.recurrent_units * (size + network.recurrent_units)
    size = network.recurrent_units
  return core * (1 if network.share_core else 2) + sum(
      before * units for layers in (network.policy_layers, network.value_layers)
      for before, units in zip((size, *layers), layers))


def _size(leaf: spaces.Leaf) -> int:
  """Return how many numbers networks see of a part of an observation."""
  if isinstance(leaf.space, gymnasium.spaces.Discrete):
    return int(leaf.space.n)
  if isinstance(leaf.space, gymnasium.spaces.MultiDiscrete):
    return int(leaf.space.nvec.sum())
  return math.prod(leaf.shape)


def _batches(config: config_lib.Config, rows: int) -> int:
  return -(-rows // (config.algorithm.minibatch_size or rows))
