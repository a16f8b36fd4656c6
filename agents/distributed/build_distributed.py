"""Builds the trainer of one machine of a cluster."""

import functools

import tensorflow as tf

from agents import build
from agents import config as config_lib
from agents.distributed import (
  access,
  collectives,
  coordinator,
  padded_actor,
  rendezvous,
  shared_updates,
)
from agents.distributed import cluster as cluster_lib
from agents.environments import train_env as train_env_lib
from agents.environments.workers import pool
from agents.simulation import in_graph_batch_env, worker_evaluator


def connect(cluster: cluster_lib.Cluster) -> collectives.Communicator:
  """Connects the machines of a cluster, which are waiting for each other.

  Call this function before the first TensorFlow operation, because TensorFlow
  configures collective operations only at the start of a program.

  Args:
    cluster: Addresses of the machines, and their secret.

  Returns:
    Communicator of the connected machines.

  Raises:
    ConfigError: If the secret of a machine differs.
    MachineLost: If another machine does not answer.
  """
  tf.config.set_visible_devices([], "GPU")
  with rendezvous.time_limit():
    # The constructor starts TensorFlow's server, and a service that detects
    # lost machines. The strategy itself is not used.
    tf.distribute.MultiWorkerMirroredStrategy(
      tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(cluster.addresses)}),
        task_type="worker",
        task_id=cluster.task,
        rpc_layer="grpc",
      )
    )
    communicator = collectives.Communicator(cluster.task, len(cluster.addresses))
    access.authenticate(communicator, cluster)
  return communicator


def trainer(
  config: config_lib.Config, workers: pool.WorkerPool | None, communicator: collectives.Communicator
) -> coordinator.Coordinator | coordinator.Participant:
  """Builds the networks, the algorithm and this machine's environments.

  Args:
    config: Configuration of the run.
    workers: Processes that step the environments; if None, this process steps
      them.
    communicator: Connects the machines.

  Returns:
    A `Coordinator` on machine 0, a `Participant` on any other machine.
  """
  train_env = train_env_lib.build(config, workers, communicator.local_rows(config.num_envs))
  algorithm = build.algorithm(
    config,
    train_env.observation_space,
    train_env.action_space,
    functools.partial(shared_updates.SharedUpdatesPPO, communicator=communicator)
    if config.data_parallel
    else None,
  )
  num_eval_envs = build.num_eval_envs(config)
  rows = communicator.local_rows(num_eval_envs)
  evaluator = (
    worker_evaluator.WorkerEvaluator(
      in_graph_batch_env.InGraphBatchEnv(build.eval_env(config, workers, rows)),
      padded_actor.PaddedActor(algorithm, rows, num_eval_envs),
      explore=False,
    )
    if rows.start < rows.stop
    else None
  )
  trainer_type = coordinator.Participant if communicator.rank else coordinator.Coordinator
  return trainer_type(
    communicator,
    num_eval_envs,
    algorithm,
    in_graph_batch_env.InGraphBatchEnv(train_env),
    evaluator,
    build.rollout_spec(config),
  )
