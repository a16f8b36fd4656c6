"""The only place where the parts of a run are put together.

Training and visualizing build the same things by the same code.
"""

from __future__ import annotations

import math

import gymnasium
import tensorflow as tf

from agents import config as config_lib
from agents.algorithms import ppo
from agents.environments import batch_env
from agents.environments import make
from agents.environments import workers as workers_lib
from agents.networks import feed_forward
from agents.ops import random
from agents.parts import memory as memory_lib
from agents.simulation import in_graph_batch_env
from agents.training import trainer as trainer_lib

_MOST_EVAL_ENVS = 10


def setup(config: config_lib.Config):
  """Prepare TensorFlow; call it before anything is built."""
  # Networks this small learn faster without the way to a GPU and back, and
  # only the CPU repeats a run bit for bit.
  tf.config.set_visible_devices([], "GPU")
  tf.config.run_functions_eagerly(config.eager)


def algorithm(config: config_lib.Config, observation_space: gymnasium.Space,
              action_space: gymnasium.Space) -> ppo.BatchPPO:
  """Build networks and algorithm for the spaces of an environment."""
  policy_seed = random.stream(config.seed, "policy")
  if isinstance(action_space, gymnasium.spaces.Discrete):
    policy = feed_forward.feed_forward_categorical(
        int(action_space.n), config.network, policy_seed)
  else:
    assert isinstance(action_space, gymnasium.spaces.Box)
    policy = feed_forward.feed_forward_gaussian(
        math.prod(action_space.shape), config.network, policy_seed)
  value = feed_forward.feed_forward_value(
      config.network, random.stream(config.seed, "value"))
  return ppo.BatchPPO(config.algorithm, observation_space, action_space,
                      policy, value, config.seed)


def trainer(config: config_lib.Config,
            workers: workers_lib.Workers | None) -> trainer_lib.Trainer:
  """Build environments, networks and algorithm, ready for the first epoch."""
  constructor = make.MakeEnv(config.env)
  train_env = batch_env.BatchEnv(
      [constructor] * config.num_envs, workers, config.seed)
  eval_env = batch_env.BatchEnv(
      [constructor] * min(config.eval_episodes, _MOST_EVAL_ENVS), workers,
      random.stream(config.seed, "eval"))
  return trainer_lib.Trainer(
      algorithm(config, train_env.observation_space, train_env.action_space),
      in_graph_batch_env.InGraphBatchEnv(train_env),
      in_graph_batch_env.InGraphBatchEnv(eval_env), memory(config))


def memory(config: config_lib.Config) -> memory_lib.Memory:
  """Return what one update learns from."""
  if length := config.algorithm.segment_length:
    return memory_lib.segments(config.num_envs, length)
  assert config.algorithm.update_every is not None
  return memory_lib.episodes(
      config.num_envs, config.algorithm.update_every,
      make.max_length(config.env))
