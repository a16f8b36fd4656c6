"""Rough model of the time of updates, which selects their device."""

import math

import gymnasium

from agents import config as config_lib
from agents import spaces

# Floating-point operations per second, in small matrix products on two cores.
_FLOPS = 150e9
# Multiplications per pixel of an image, and number of output features.
_CONVOLUTIONS = {"nature": (1300, 512), "impala": (8500, 256)}


def is_gpu_faster(config: config_lib.Config, space: gymnasium.Space, rows: int) -> bool:
  """Returns whether an update on a GPU is more than twice as fast as on a CPU.

  The model assumes that each start of a GPU kernel takes about 5 us, that a
  gradient step starts 150 kernels, and that computing the advantages starts
  three kernels per row. These numbers were derived from measurements on a CPU
  with two cores, not measured on a GPU.

  Args:
    config: Configuration of the run.
    space: Space of the observations.
    rows: Number of steps in the batch of an update.

  Returns:
    Whether updates should run on the GPU.
  """
  epochs = config.algorithm.update_epochs
  estimates = epochs if config.algorithm.recompute_advantages else 1
  cpu = epochs * 6 * _multiplications(config, space) * rows / _FLOPS
  gpu = 5e-6 * (150 * epochs * _num_minibatches(config, rows) + 3 * rows * estimates)
  return cpu > 2 * gpu


def _multiplications(config: config_lib.Config, space: gymnasium.Space) -> int:
  """Returns the multiplications of the policy and value network per step."""
  network, leaves = config.network, spaces.leaves(space)
  images = [leaf for leaf in leaves if leaf.is_image]
  pixels = sum(math.prod(sorted(leaf.shape)[-2:]) for leaf in images)
  per_pixel, units = _CONVOLUTIONS[network.conv]
  torso = pixels * per_pixel
  size = len(images) * units + network.frame_stack * sum(
    gymnasium.spaces.flatdim(leaf.space) for leaf in leaves if not leaf.is_image
  )
  if network.recurrent:
    gates = {"gru": 3, "lstm": 4}[network.recurrent]
    torso += gates * network.recurrent_units * (size + network.recurrent_units)
    size = network.recurrent_units
  return torso * (1 if network.share_core else 2) + sum(
    before * units
    for layers in (network.policy_layers, network.value_layers)
    for before, units in zip((size, *layers), layers)
  )


def _num_minibatches(config: config_lib.Config, rows: int) -> int:
  return math.ceil(rows / (config.algorithm.minibatch_size or rows))
