"""Builds the trainer of one machine of a cluster."""

import functools

import tensorflow as tf

from agents import build
from agents import config as config_lib
from agents.distributed import cluster as cluster_lib
from agents.distributed import (
  collectives,
  coordinator,
  evaluator,
  shared_updates,
)
from agents.distributed import trainer as trainer_lib
from agents.environments.workers import pool
from agents.simulation import in_graph_batch_env

_TIMEOUT = 900.0  # Seconds to wait for another machine that is alive.


def connect(cluster: cluster_lib.Cluster) -> collectives.Communicator:
  """Connects the machines of a cluster; must run before anything is built.

  Args:
    cluster: Addresses of the machines.

  Returns:
    The group of connected machines.

  Raises:
    ConfigError: If this machine cannot listen on its address.
  """
  tf.config.set_visible_devices([], "GPU")
  with cluster_lib.StartWatchdog(cluster):
    # Starts TensorFlow's server, and a service that detects lost machines.
    tf.distribute.MultiWorkerMirroredStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": list(cluster.addresses)}),
            task_type="worker", task_id=cluster.task, rpc_layer="grpc"))
    communicator = collectives.Communicator(
        cluster.task, len(cluster.addresses), _TIMEOUT)
    communicator.all_gather_object(None)
  return communicator


def trainer(config: config_lib.Config, workers: pool.WorkerPool | None,
            communicator: collectives.Communicator
            ) -> trainer_lib.DistributedTrainer:
  """Builds this machine's environments, and networks and algorithm.

  Args:
    config: Configuration of the run.
    workers: Processes that step environments; None steps them in this process.
    communicator: The machines.

  Returns:
    A `Coordinator` on machine 0.
  """
  rows = communicator.local_rows(config.num_envs)
  num_eval_envs = build.num_eval_envs(config)
  eval_rows = communicator.local_rows(num_eval_envs)
  train_env = build.train_env(config, workers, rows)
  eval_env = None
  if eval_rows.start < eval_rows.stop:
    eval_env = in_graph_batch_env.InGraphBatchEnv(
        build.eval_env(config, workers, eval_rows))
  algorithm_type = functools.partial(
      shared_updates.SharedUpdatesPPO, communicator=communicator
      ) if config.data_parallel else None
  trainer_type = (trainer_lib.DistributedTrainer if communicator.rank
                  else coordinator.Coordinator)
  algorithm = build.algorithm(
      config, train_env.observation_space, train_env.action_space,
      algorithm_type)
  return trainer_type(
      algorithm, in_graph_batch_env.InGraphBatchEnv(train_env),
      evaluator.DistributedEvaluator(
          eval_env, algorithm, communicator, num_eval_envs),
      build.rollout_spec(config), trainer_lib.Share(
          communicator, rows, config.num_envs, config.data_parallel))
