"""The only place where the parts of a run are put together.

Training and visualizing build the same things by the same code.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import tensorflow as tf

from agents import class_loader
from agents import config as config_lib
from agents import spaces
from agents.algorithms import models
from agents.algorithms import on_device
from agents.algorithms import ppo
from agents.distributed import cluster as cluster_lib
from agents.distributed import collectives
from agents.distributed import coordinator
from agents.distributed import shared_updates
from agents.environments import batch_env
from agents.environments.blocks import backend
from agents.environments.blocks import envpool_block
from agents.environments.blocks import gymnasium_block
from agents.environments.data import failure_budget
from agents.environments.making import make as make_lib
from agents.environments.workers import pool
from agents.networks import composite
from agents.networks import convolutional
from agents.networks import feed_forward
from agents.networks import torso as torso_lib
from agents.ops import random
from agents.simulation import in_graph_batch_env
from agents.simulation import rollout
from agents.training import cost_model
from agents.training import trainer as trainer_lib

_MOST_EVAL_ENVS = 10
_MACHINE_TIMEOUT = 900.0  # Seconds to wait for another one that lives.
_NOT_BRIEF = 16  # Steps of an episode, see `rollout.segments`.
_METHODS = ("initial_state", "noise", "act", "learn", "variables",
            "assign")  # Of `trainer.Algorithm`.


def setup(config: config_lib.Config):
  """Prepare TensorFlow; call it before anything is built.

  Raises:
    ConfigError: If there is no GPU although one is asked for.
  """
  tf.config.run_functions_eagerly(config.eager)
  # TensorFlow's threads stay as they are, one a core: they look around for work
  # before they sleep, without which learning takes half as long again, and
  # while environments step they do sleep. docs/performance.md has the trials;
  # TF_NUM_INTRAOP_THREADS changes them.
  gpus = tf.config.list_physical_devices("GPU")
  if config.device == "gpu" and not gpus:
    raise config_lib.ConfigError(
        "device=gpu, but TensorFlow sees none. `pip install "
        "'tensorflow[and-cuda]'` brings what NVIDIA's need; --device cpu does "
        "without.")
  # They are let go unless `trainer` finds that one pays.
  with contextlib.suppress(RuntimeError):  # After another run, in a notebook.
    tf.config.set_visible_devices([], "GPU")


def machines(cluster: cluster_lib.Cluster) -> collectives.Communicator:
  """Connect the machines of a cluster, before anything else is built.

  Raises:
    ConfigError: If this can't be the machine it should be.
  """
  tf.config.set_visible_devices([], "GPU")
  with cluster_lib.Waiting(cluster):
    # Begins TensorFlow's server, and a service that watches over all machines.
    tf.distribute.MultiWorkerMirroredStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": list(cluster.addresses)}),
            task_type="worker", task_id=cluster.task, rpc_layer="grpc"))
    connected = collectives.Communicator(
        cluster.task, len(cluster.addresses), _MACHINE_TIMEOUT)
    connected.hear(None)
  return connected


def check(config: config_lib.Config):
  """Look for all classes of the user's own that a run is to be made of.

  Raises:
    ConfigError: If one is missing, or is not what it should be.
  """
  algorithm_class(config.algorithm)
  block_class(config)
  if config.network.hidden != "dense":
    feed_forward.own_hidden(config.network)


def algorithm_class(config: config_lib.Algorithm) -> Callable[..., Any]:
  """Return what is built as `BatchPPO` is."""
  if config.type == "ppo":
    return ppo.BatchPPO
  return functools.partial(class_loader.find_class(
      "algorithm.type", config.type, methods=_METHODS,
      arguments=config.kwargs), **config.kwargs)


def block_class(config: config_lib.Config) -> Callable[..., Any]:
  """Return what is built as `Block` is, to step environments of training."""
  if config.env.backend == "gymnasium":
    return gymnasium_block.Block
  if config.env.backend == "envpool":
    return functools.partial(
        envpool_block.EnvPoolBlock, threads=config.workers(pool.cores()))
  return backend.find(config.env.backend)


def algorithm(config: config_lib.Config, observation_space: gymnasium.Space,
              action_space: gymnasium.Space,
              machines: collectives.Communicator = collectives.LOCAL
              ) -> trainer_lib.Algorithm:
  """Build networks and algorithm for the spaces of an environment."""
  policy = feed_forward.Policy(
      composite.make(action_space, config.network), config.network,
      random.stream(config.seed, "policy"))
  value = feed_forward.feed_forward_value(
      config.network, random.stream(config.seed, "value"))
  torsos = [torso(config, observation_space, name) for name in (
      ["core"] if config.network.share_core else ["policy", "value"])]
  algorithm_type = algorithm_class(config.algorithm)
  if config.data_parallel and machines.amount > 1:
    algorithm_type = functools.partial(
        shared_updates.SharedUpdatesPPO, machines=machines)
  return algorithm_type(
      config.algorithm, observation_space,
      models.Networks(policy, value, torsos[0], torsos[-1]), config.seed,
      config.network.frame_stack)


def torso(config: config_lib.Config, observation_space: gymnasium.Space,
          name: str) -> torso_lib.Torso | None:
  """Builds the layers between observations and a network's hidden layers.

  Args:
    config: Configuration of the run.
    observation_space: Observation space.
    name: Prefix of the variables' names.
  Returns:
    The layers, or None if plain vectors need none.
  """
  network = config.network
  convolutions = [convolutional.make(
      network.conv, network, random.stream(config.seed, f"{name} {index}"),
      f"{name}_image_{index}")
                  for index, leaf in enumerate(spaces.leaves(observation_space))
                  if leaf.is_image]
  if network.recurrent:
    return torso_lib.RecurrentTorso(convolutions, torso_lib.cell(
        network.recurrent, network.recurrent_units,
        random.stream(config.seed, f"{name} cell"), f"{name}_cell"))
  if convolutions or network.frame_stack > 1:
    return torso_lib.Torso(convolutions)
  return None


def learner(config: config_lib.Config, observation_space: gymnasium.Space,
            action_space: gymnasium.Space, device: str,
            machines: collectives.Communicator = collectives.LOCAL
            ) -> trainer_lib.Algorithm:
  """Build an algorithm that learns on a device, and acts on the CPU."""
  make_algorithm = functools.partial(
      algorithm, config, observation_space, action_space, machines)
  return (make_algorithm() if device == "CPU:0" else
          on_device.OnDevice(make_algorithm, device))


def learning_device(config: config_lib.Config,
                    observation_space: gymnasium.Space) -> str:
  """Return "CPU:0", or "GPU:0" where that is asked for or seems faster."""
  gpus = tf.config.list_physical_devices("GPU")
  if config.device == "cpu" or not gpus:
    return "CPU:0"
  if config.device == "gpu" or cost_model.gpu_pays(
      config, observation_space, memory(config).rows):
    return "GPU:0"
  return "CPU:0"


def trainer(config: config_lib.Config, workers: pool.WorkerPool | None,
            machines: collectives.Communicator = collectives.LOCAL
            ) -> trainer_lib.Trainer:
  """Build environments, networks and algorithm, ready for the first epoch.

  Args:
    config: Of the run.
    workers: Processes to step environments in; None steps them in this one.
    machines: That train together, each with its share of the environments.
  """
  constructor = make_lib.MakeEnv(config.env)
  constructors = [constructor] * config.num_envs
  if config.stagger and config.algorithm.segment_length:
    constructors = make_lib.staggered(config.env, config.num_envs, config.seed)
  incidents = (workers.incidents if workers else
               failure_budget.FailureBudget(config.most_incidents))
  stepped_by_workers = config.env.backend == "gymnasium"
  train_env = batch_env.BatchEnv(
      constructors, workers if stepped_by_workers else None, config.seed,
      groups(config, machines), incidents, block=block_class(config),
      rows=machines.rows(config.num_envs))
  evaluating = min(config.eval_episodes, _MOST_EVAL_ENVS)
  rows = machines.rows(evaluating)
  eval_env = None if rows.start == rows.stop else (
      in_graph_batch_env.InGraphBatchEnv(batch_env.BatchEnv(
          [constructor] * evaluating, workers,
          random.stream(config.seed, "eval"), incidents=incidents, rows=rows)))
  device = "CPU:0" if machines.amount > 1 else learning_device(
      config, train_env.observation_space)
  if device != "CPU:0":
    gpu = tf.config.list_physical_devices("GPU")[0]
    tf.config.set_visible_devices(gpu, "GPU")
    tf.config.experimental.set_memory_growth(gpu, True)
  leads = machines.amount > 1 and machines.index == 0
  return (coordinator.Coordinator if leads else trainer_lib.Trainer)(
      learner(config, train_env.observation_space, train_env.action_space,
              device, machines),
      in_graph_batch_env.InGraphBatchEnv(train_env, machines), eval_env,
      memory(config))


def groups(config: config_lib.Config,
           machines: collectives.Communicator = collectives.LOCAL) -> int:
  """Return 2 if half of the environments step while the others act.

  It only saves time: with more than some 50 us a step, as nobody waits for the
  slower worker any more. There are no halves of an odd number, nor where
  environments wait until all have played their episodes.
  """
  here = config.num_envs // machines.amount
  halves = here % 2 == 0 and config.algorithm.segment_length
  return 2 if config.double_buffering and halves else 1


def learns_in_parts(config: config_lib.Config,
                    observation_space: gymnasium.Space) -> bool:
  """Whether an update takes so long that it has to be stopped in its middle."""
  return cost_model.learning_seconds(
      config, observation_space, memory(config).rows) > 1


def memory(config: config_lib.Config) -> rollout.RolloutSpec:
  """Return what one update learns from."""
  if length := config.algorithm.segment_length:
    return rollout.segments(
        config.num_envs, length, in_place=bool(config.network.recurrent),
        brief=(make_lib.stated_length(config.env) or _NOT_BRIEF) < _NOT_BRIEF)
  assert config.algorithm.update_every is not None
  return rollout.episodes(
      config.num_envs, config.algorithm.update_every,
      make_lib.max_length(config.env))
