"""Builds the components of a run from its configuration."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import tensorflow as tf

from agents import class_loader, spaces
from agents import config as config_lib
from agents.algorithms import feed_forward_model, gpu_learner, ppo
from agents.algorithms.variants import image_ppo, symmetric_ppo
from agents.environments import batch_env
from agents.environments import train_env as train_env_lib
from agents.environments.data import failure_budget
from agents.environments.making import make
from agents.environments.workers import pool
from agents.networks import (
  action_mask,
  convolutional,
  distribution_for_space,
  feed_forward,
  observation_parts,
)
from agents.networks import torso as torso_lib
from agents.ops import random
from agents.robots import mirror
from agents.simulation import in_graph_batch_env, rollout_to_batch, worker_evaluator
from agents.training import trainer as trainer_lib

_MAX_EVAL_ENVS = 10
# Methods of `trainer.Algorithm`. Its attribute `weights` may exist only in
# instances.
_METHODS = ("initial_state", "noise", "act", "learn", "encode", "variables", "assign")


def setup(config: config_lib.Config) -> None:
  """Configures TensorFlow; must run before anything is built.

  Args:
    config: Configuration of the run.

  Raises:
    ConfigError: If `device` is "gpu" and TensorFlow finds no GPU.
  """
  tf.config.run_functions_eagerly(config.eager)
  # TensorFlow keeps its default of one thread per core, which the environment
  # variable TF_NUM_INTRAOP_THREADS changes. Idle threads poll for work before
  # they sleep. Without polling, learning takes 50 % longer, and stepping is not
  # faster; see docs/experiments/performance.md.
  if config.device == "gpu" and not tf.config.list_physical_devices("GPU"):
    raise config_lib.ConfigError(
      "device=gpu, but TensorFlow finds no GPU. Install its libraries with "
      "`pip install 'tensorflow[and-cuda]'`, or use --device cpu."
    )
  # Hides all GPUs; `trainer` makes one visible if updates run on it. In a
  # notebook, this raises RuntimeError if an earlier run initialized the GPUs.
  with contextlib.suppress(RuntimeError):
    tf.config.set_visible_devices([], "GPU")


def check(config: config_lib.Config) -> None:
  """Checks custom classes, and whether the environment is symmetric if needed.

  Args:
    config: Configuration of the run.

  Raises:
    ConfigError: If a class does not exist or lacks a method, or the symmetry
      of the environment is unknown.
  """
  algorithm_class(config.algorithm)
  if config.algorithm.symmetry:
    mirrors(config.env)
  if config.network.hidden != "dense":
    feed_forward.custom_hidden(config.network)


def algorithm_class(config: config_lib.Algorithm) -> Callable[..., Any]:
  """Returns a constructor of the algorithm, with its `kwargs` applied.

  Args:
    config: Section `algorithm` of the configuration.

  Raises:
    ConfigError: If a custom class does not exist, or lacks a method or one of
      the arguments `kwargs`.
  """
  if config.type == "ppo":
    return ppo.BatchPPO
  return functools.partial(
    class_loader.find_class(
      "algorithm.type", config.type, methods=_METHODS, arguments=config.kwargs
    ),
    **config.kwargs,
  )


def mirrors(config: config_lib.Env) -> dict[str, mirror.Mirror]:
  """Returns the mirrors of "observ" and "action" of an environment.

  Args:
    config: Section `env` of the configuration.

  Raises:
    ConfigError: If the symmetry of the environment is unknown.
  """
  with contextlib.closing(make.MakeEnv(config)()) as env:
    observ, action = mirror.of_env(env)
  return {"observ": observ, "action": action}


def eval_env(
  config: config_lib.Config, workers: pool.WorkerPool | None, rows: slice = slice(None)
) -> batch_env.BatchEnv:
  """Builds the environments for evaluations.

  Args:
    config: Configuration of the run.
    workers: Processes that step environments; None steps them in this process.
    rows: Indices of the environments to build; all by default.
  """
  constructors = make.constructors(config.env, num_eval_envs(config), config.seed)
  return batch_env.BatchEnv(
    constructors[rows],
    workers,
    random.stream(config.seed, "eval"),
    failure_budget.FailureBudget(config.max_failures),
    first=rows.start or 0,
  )


def num_eval_envs(config: config_lib.Config) -> int:
  """Returns the number of environments that an evaluation uses.

  Args:
    config: Configuration of the run.
  """
  return min(config.eval_episodes, _MAX_EVAL_ENVS)


def algorithm(
  config: config_lib.Config,
  observation_space: gymnasium.Space,
  action_space: gymnasium.Space,
  algorithm_type: Callable[..., Any] | None = None,
) -> trainer_lib.Algorithm:
  """Builds networks and algorithm for the spaces of an environment.

  Args:
    config: Configuration of the run.
    observation_space: Space of the observations.
    action_space: Space of the actions.
    algorithm_type: Constructor of the algorithm; by default the class that
      the configuration names.
  """
  policy = feed_forward.Policy(
    distribution_for_space.make(action_space, config.network),
    config.network,
    random.stream(config.seed, "policy"),
  )
  value = feed_forward.feed_forward_value(config.network, random.stream(config.seed, "value"))
  networks = feed_forward_model.Networks(policy, value, *torsos(config, observation_space))
  if name := config.network.action_mask:
    mask = action_mask.ActionMask(observation_space, action_space, name)
    networks = networks._replace(mask=mask)
  if not algorithm_type:
    algorithm_type = algorithm_class(config.algorithm)
    if config.algorithm.symmetry:
      algorithm_type = functools.partial(symmetric_ppo.SymmetricPPO, **mirrors(config.env))
    if algorithm_type is ppo.BatchPPO and networks.have_convolutions:
      algorithm_type = image_ppo.ImagePPO
  return algorithm_type(
    config.algorithm, observation_space, networks, config.seed, config.network.frame_stack
  )


def torsos(
  config: config_lib.Config, space: gymnasium.Space
) -> tuple[torso_lib.Torso | None, torso_lib.Torso | None]:
  """Builds the layers between observations and hidden layers.

  Args:
    config: Configuration of the run.
    space: Observation space.

  Returns:
    Torsos of policy and value; one object if they share a torso. See `torso`.

  Raises:
    ConfigError: If the observations lack a part that the configuration names.
  """
  network = config.network
  policy, value = (
    observation_parts.leaves(space, getattr(network, name), f"network.{name}")
    for name in ("policy_observ", "value_observ")
  )
  if network.share_core and policy == value:
    shared = torso(config, space, policy, "core")
    return shared, shared
  return torso(config, space, policy, "policy"), torso(config, space, value, "value")


def torso(
  config: config_lib.Config, space: gymnasium.Space, leaves: list[spaces.Leaf], name: str
) -> torso_lib.Torso | None:
  """Builds the layers between observations and a network's hidden layers.

  Args:
    config: Configuration of the run.
    space: Observation space.
    leaves: Leaves of the space that the network receives.
    name: Prefix of the names of variables.

  Returns:
    The layers, or None if the network receives complete observations without
    images, and the configuration has neither frame stacks nor a recurrent cell.
  """
  network = config.network
  all_leaves = spaces.leaves(space)
  convolutions = [
    convolutional.make(
      network.conv, network, random.stream(config.seed, f"{name} {index}"), f"{name}_image_{index}"
    )
    for index, leaf in enumerate(all_leaves)
    if leaf.is_image and leaf in leaves
  ]
  arguments: list[Any] = [convolutions]
  if leaves != all_leaves:
    arguments.append(observation_parts.ObservationParts(space, leaves, network.frame_stack))
  if network.recurrent:
    seed = random.stream(config.seed, f"{name} cell")
    cell = torso_lib.cell(network.recurrent, network.recurrent_units, seed, f"{name}_cell")
    return torso_lib.RecurrentTorso(cell, *arguments)
  if convolutions or network.frame_stack > 1 or leaves != all_leaves:
    return torso_lib.Torso(*arguments)
  return None


def trainer(
  config: config_lib.Config,
  workers: pool.WorkerPool | None,
  train_env: batch_env.BatchEnv | None = None,
) -> trainer_lib.Trainer:
  """Builds environments, networks and algorithm, ready for the first epoch.

  With `device` "gpu", updates run on a GPU. Actions are always computed on the
  CPU.

  Args:
    config: Configuration of the run.
    workers: Processes that step environments; None steps them in this process.
    train_env: Training environments; by default, this function builds them.
  """
  env = train_env or train_env_lib.build(config, workers)
  make_algorithm: Callable[[], trainer_lib.Algorithm] = functools.partial(
    algorithm, config, env.observation_space, env.action_space
  )
  if config.device == "gpu":
    gpu = tf.config.list_physical_devices("GPU")[0]
    tf.config.set_visible_devices(gpu, "GPU")
    tf.config.experimental.set_memory_growth(gpu, True)
    make_algorithm = functools.partial(gpu_learner.GPULearner, make_algorithm, "GPU:0")
  learner = make_algorithm()
  return trainer_lib.Trainer(
    learner,
    in_graph_batch_env.InGraphBatchEnv(env),
    worker_evaluator.WorkerEvaluator(
      in_graph_batch_env.InGraphBatchEnv(eval_env(config, workers)), learner, explore=False
    ),
    rollout_spec(config),
  )


def rollout_spec(config: config_lib.Config) -> rollout_to_batch.RolloutSpec:
  """Returns the size and layout of the batch of one update.

  Args:
    config: Configuration of the run.
  """
  if length := config.algorithm.segment_length:
    return rollout_to_batch.segments(
      config.num_envs,
      length,
      in_place=bool(config.network.recurrent),
      time_limit=make.stated_length(config.env),
    )
  assert config.algorithm.update_every is not None
  return rollout_to_batch.episodes(
    config.num_envs,
    config.algorithm.update_every,
    make.max_length(config.env),
    in_place=bool(config.network.recurrent),
  )
