"""What training roughly costs, by measurements in docs/performance.md."""

from __future__ import annotations

import math

import gymnasium

from agents import config as config_lib

_FLOPS = 150e9  # Of two cores, in products of small matrices.
_SECONDS_PER_GRADIENT_STEP = 50e-6  # Whatever its size.
_SECONDS_PER_BATCHED_STEP = 640e-6  # Crossing and inference.
_STEPPING_OVERHEAD = 1.2  # Of stepping in workers, against a plain loop.


def learning_seconds(config: config_lib.Config, inputs: int, rows: int
                     ) -> float:
  """Return the seconds that an update takes on two CPU cores.

  Args:
    config: Says how often the rows are seen, by which networks.
    inputs: Size of an observation.
    rows: Steps in the memory.
  """
  epochs = config.algorithm.update_epochs
  return (6 * _weights(config, inputs) * rows * epochs / _FLOPS
          + _SECONDS_PER_GRADIENT_STEP * epochs * _batches(config, rows))


def gpu_pays(config: config_lib.Config, inputs: int, rows: int) -> bool:
  """Whether the products of an update take two cores twice as long as a GPU.

  A GPU takes some 5 us to begin each kernel, of which a gradient step has 150,
  and advantages three for each row. This was derived from measurements on a
  CPU, not measured on a GPU.
  """
  epochs = config.algorithm.update_epochs
  estimates = epochs if config.algorithm.recompute_advantages else 1
  cpu = 6 * _weights(config, inputs) * rows * epochs / _FLOPS
  gpu = 5e-6 * (150 * epochs * _batches(config, rows) + 3 * rows * estimates)
  return cpu > 2 * gpu


def training_seconds(config: config_lib.Config, inputs: int, rows: int,
                     steps: int, steps_per_second: float, workers: int,
                     episode_length: int) -> float:
  """Return the seconds that training takes, evaluations and all.

  Args:
    config: Of the run.
    inputs: Size of an observation.
    rows: Steps in the memory.
    steps: Still to do.
    steps_per_second: Of one environment in a plain loop.
    workers: Processes that step environments, each on a core of its own.
    episode_length: Of an evaluation's episodes; 0 if that isn't known.
  """
  step = _STEPPING_OVERHEAD / steps_per_second
  train = steps * (
      step / workers + _SECONDS_PER_BATCHED_STEP / config.num_envs
      + learning_seconds(config, inputs, rows) / rows)
  evaluations = steps / config.every("eval_every") * episode_length
  share = math.ceil(config.eval_episodes / workers)
  return train + evaluations * (share * step + _SECONDS_PER_BATCHED_STEP)


def inputs(space: gymnasium.Space) -> int:
  """Return the size of an observation, as it enters the networks."""
  if isinstance(space, gymnasium.spaces.Discrete):
    return int(space.n)
  return math.prod(space.shape or (1,))


def _weights(config: config_lib.Config, inputs: int) -> int:
  network = config.network
  return sum(
      before * units for layers in (network.policy_layers, network.value_layers)
      for before, units in zip((inputs, *layers), layers))


def _batches(config: config_lib.Config, rows: int) -> int:
  return -(-rows // (config.algorithm.minibatch_size or rows))
