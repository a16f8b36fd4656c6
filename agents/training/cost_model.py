"""Rough model of training time.

The model is fitted to speeds in docs/experiments/performance.md.
"""

import contextlib
import math

import gymnasium

from agents import config as config_lib
from agents import spaces
from agents.environments.making import make
from agents.environments.workers import pool
from agents.training import epoch_result
from agents.training import trainer as trainer_lib

# Floating-point operations per second, in small matrix products on two cores.
_FLOPS = 150e9
_SECONDS_PER_GRADIENT_STEP = 50e-6  # Overhead for any minibatch size.
# Inference, and the call of Python from the graph.
_SECONDS_PER_BATCHED_STEP = 640e-6
# Multiplications per pixel of an image, and number of output features.
_CONVOLUTIONS = {"nature": (1300, 512), "impala": (8500, 256)}
# Stepping time in workers relative to the stepping time in a plain loop.
_STEPPING_OVERHEAD = 1.2


def is_gpu_faster(config: config_lib.Config, space: gymnasium.Space, rows: int
             ) -> bool:
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
  gpu = 5e-6 * (
      150 * epochs * _num_minibatches(config, rows) + 3 * rows * estimates)
  return cpu > 2 * gpu


def training_minutes(config: config_lib.Config, trainer: trainer_lib.Trainer,
                     epoch: epoch_result.Epoch, steps: int) -> float:
  """Estimates the minutes of training, including evaluations.

  Args:
    config: Configuration of the run.
    trainer: Trainer of the run.
    epoch: Result of the first epoch, from which the stepping time is taken.
    steps: Remaining training steps.

  Returns:
    Estimated minutes.
  """
  env, rows = trainer.train_env.batch_env, trainer.rollout_spec.rows
  step_seconds = (
      _STEPPING_OVERHEAD * epoch.busy_seconds * env.parallel / epoch.steps)
  workers = min(env.parallel, pool.num_cores())  # Workers that run in parallel.
  learn_seconds = config.algorithm.update_epochs * (
      6 * _multiplications(config, env.observation_space) / _FLOPS
      + _SECONDS_PER_GRADIENT_STEP * _num_minibatches(config, rows) / rows)
  seconds = steps * (step_seconds / workers + learn_seconds
                     + _SECONDS_PER_BATCHED_STEP / config.num_envs)
  # Without a time limit, the length of evaluation episodes is unknown.
  with contextlib.suppress(config_lib.ConfigError):
    eval_steps = (steps / config.every("eval_every")
                  * make.max_length(config.env))
    seconds += eval_steps * (
        math.ceil(config.eval_episodes / workers) * step_seconds
        + _SECONDS_PER_BATCHED_STEP)
  return max(0.0, seconds) / 60


def _multiplications(config: config_lib.Config, space: gymnasium.Space) -> int:
  """Returns the multiplications of the policy and value network per step."""
  network, leaves = config.network, spaces.leaves(space)
  images = [leaf for leaf in leaves if leaf.is_image]
  pixels = sum(math.prod(sorted(leaf.shape)[-2:]) for leaf in images)
  per_pixel, units = _CONVOLUTIONS[network.conv]
  torso = pixels * per_pixel
  size = len(images) * units + network.frame_stack * sum(
      gymnasium.spaces.flatdim(leaf.space)
      for leaf in leaves if not leaf.is_image)
  if network.recurrent:
    gates = {"gru": 3, "lstm": 4}[network.recurrent]
    torso += gates * network.recurrent_units * (size + network.recurrent_units)
    size = network.recurrent_units
  return torso * (1 if network.share_core else 2) + sum(
      before * units for layers in (network.policy_layers, network.value_layers)
      for before, units in zip((size, *layers), layers))


def _num_minibatches(config: config_lib.Config, rows: int) -> int:
  return math.ceil(rows / (config.algorithm.minibatch_size or rows))
