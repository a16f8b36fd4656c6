"""Rough model of training time, fitted to docs/performance.md."""

import math

import gymnasium

from agents import config as config_lib
from agents import spaces

_FLOPS = 150e9  # Per second in small matrix products, on two cores.
_SECONDS_PER_GRADIENT_STEP = 50e-6  # Constant overhead.
_SECONDS_PER_BATCHED_STEP = 640e-6  # Graph crossing and inference.
# Multiplications per pixel of an image, and number of output features.
_CONVOLUTIONS = {"nature": (1300, 512), "impala": (8500, 256)}
_STEPPING_OVERHEAD = 1.2  # Stepping in workers relative to a plain loop.


def learning_seconds(config: config_lib.Config, space: gymnasium.Space,
                     rows: int) -> float:
  """Estimate the seconds of an update on two CPU cores.

  Args:
    config: Configuration of the run.
    space: Space of the observations.
    rows: Steps in the batch of an update.
  Returns:
    Estimated seconds.
  """
  return config.algorithm.update_epochs * (
      6 * _multiplications(config, space) * rows / _FLOPS
      + _SECONDS_PER_GRADIENT_STEP * _num_minibatches(config, rows))


def gpu_pays(config: config_lib.Config, space: gymnasium.Space, rows: int
             ) -> bool:
  """Return whether an update takes twice as long on two cores as on a GPU.

  Each start of a GPU kernel takes about 5 us. A gradient step starts 150
  kernels, and the advantages start three kernels per row. These numbers were
  derived from measurements on a CPU, not measured on a GPU.

  Args:
    config: Configuration of the run.
    space: Space of the observations.
    rows: Steps in the batch of an update.
  Returns:
    True if the GPU is worth its overhead.
  """
  epochs = config.algorithm.update_epochs
  estimates = epochs if config.algorithm.recompute_advantages else 1
  cpu = epochs * 6 * _multiplications(config, space) * rows / _FLOPS
  gpu = 5e-6 * (
      150 * epochs * _num_minibatches(config, rows) + 3 * rows * estimates)
  return cpu > 2 * gpu


def training_seconds(config: config_lib.Config, space: gymnasium.Space,
                     rows: int, steps: int, steps_per_second: float,
                     workers: int, episode_length: int) -> float:
  """Estimate the seconds of training, including evaluations.

  Args:
    config: Configuration of the run.
    space: Space of the observations.
    rows: Steps in the batch of an update.
    steps: Remaining training steps.
    steps_per_second: Speed of one environment in a plain loop.
    workers: Processes that step environments, each on its own core.
    episode_length: Steps of an evaluation episode; 0 if unknown.
  Returns:
    Estimated seconds.
  """
  step = _STEPPING_OVERHEAD / steps_per_second
  train = steps * (
      step / workers + _SECONDS_PER_BATCHED_STEP / config.num_envs
      + learning_seconds(config, space, rows) / rows)
  eval_steps = steps / config.every("eval_every") * episode_length
  episodes_per_worker = math.ceil(config.eval_episodes / workers)
  return train + eval_steps * (
      episodes_per_worker * step + _SECONDS_PER_BATCHED_STEP)


def _multiplications(config: config_lib.Config, space: gymnasium.Space) -> int:
  """Return the multiplications of both networks per step."""
  network, leaves = config.network, spaces.leaves(space)
  images = [leaf for leaf in leaves if leaf.is_image]
  pixels = sum(math.prod(sorted(leaf.shape)[-2:]) for leaf in images)
  per_pixel, units = _CONVOLUTIONS[network.conv]
  torso = pixels * per_pixel
  size = len(images) * units + network.frame_stack * sum(
      _num_inputs(leaf) for leaf in leaves if not leaf.is_image)
  if network.recurrent:
    gates = {"gru": 3, "lstm": 4}[network.recurrent]
    torso += gates * network.recurrent_units * (size + network.recurrent_units)
    size = network.recurrent_units
  return torso * (1 if network.share_core else 2) + sum(
      before * units for layers in (network.policy_layers, network.value_layers)
      for before, units in zip((size, *layers), layers))


def _num_inputs(leaf: spaces.Leaf) -> int:
  """Return the number of network inputs of a part of an observation."""
  if isinstance(leaf.space, gymnasium.spaces.Discrete):
    return int(leaf.space.n)
  if isinstance(leaf.space, gymnasium.spaces.MultiDiscrete):
    return int(leaf.space.nvec.sum())
  return math.prod(leaf.shape)


def _num_minibatches(config: config_lib.Config, rows: int) -> int:
  return math.ceil(rows / (config.algorithm.minibatch_size or rows))
