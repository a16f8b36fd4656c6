"""Trains the task of a config with the PPO of Stable-Baselines3.

    python -m benchmarks.peers.sb3 --config hopper --steps 300000 --matched

Prints the learning curve as one line of JSON. `--matched` applies the settings
of the config that Stable-Baselines3 supports. Without this option, PPO has its
default settings and one environment. Training always runs in one process, on
the CPU.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
import types
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from agents import config as config_lib
from agents import spaces
from agents.environments.making import make
from benchmarks.common import command_line, training

if TYPE_CHECKING:
  import pandas as pd

ACTIVATIONS = {"tanh": "Tanh", "relu": "ReLU", "elu": "ELU"}


def library() -> types.ModuleType:
  """Imports Stable-Baselines3.

  A process crashes if it imports PyTorch's compiler after TensorFlow (PyTorch
  2.14 and 2.15, TensorFlow 2.21). Stable-Baselines3 imports TensorFlow for its
  logs, and PyTorch's optimizers import the compiler later. This function
  therefore imports the compiler first.

  Returns:
    The module `stable_baselines3`.
  """
  import torch._dynamo  # noqa: F401, I001
  import stable_baselines3

  return stable_baselines3


def vector_env(config: config_lib.Config, num_envs: int, monitor_dir: str | None = None) -> Any:
  """Builds the environments of a config in this process.

  Images get a channel axis, and frames are stacked, as in the config.

  Args:
    config: Configuration of the run.
    num_envs: Number of environments.
    monitor_dir: Folder for the returns of all episodes; None records nothing.
  """
  library()
  from stable_baselines3.common import env_util, vec_env

  def make_env() -> gymnasium.Env:
    env = make.MakeEnv(config.env)()
    shape = env.observation_space.shape
    if is_image(env.observation_space) and len(shape) == 2:
      env = gymnasium.wrappers.ReshapeObservation(env, (*shape, 1))
    return env

  env = env_util.make_vec_env(
    make_env, num_envs, config.seed, monitor_dir=monitor_dir, vec_env_cls=vec_env.DummyVecEnv
  )
  if config.network.frame_stack > 1:
    env = vec_env.VecFrameStack(env, config.network.frame_stack)
  return env


def policy(space: gymnasium.Space) -> str:
  """Returns the name of the policy class for observations of a space."""
  if isinstance(space, gymnasium.spaces.Dict):
    return "MultiInputPolicy"
  return "CnnPolicy" if is_image(space) else "MlpPolicy"


def is_image(space: gymnasium.Space) -> bool:
  """Returns whether observations consist of one image."""
  return [leaf.is_image for leaf in spaces.leaves(space)] == [True]


def settings(config: config_lib.Config, action_space: gymnasium.Space) -> dict[str, Any]:
  """Returns the arguments of PPO that correspond to a config.

  Args:
    config: Configuration of the run.
    action_space: Action space of the environment.

  Raises:
    ConfigError: If an update learns from whole episodes.
  """
  algorithm, network = config.algorithm, config.network
  length = algorithm.segment_length
  if not length:
    raise config_lib.ConfigError(
      "Stable-Baselines3 learns from segments, but this config has no algorithm.segment_length."
    )
  rate, std = algorithm.learning_rate, network.init_std
  if isinstance(action_space, gymnasium.spaces.Box) and (action_space.is_bounded()):
    # `init_std` applies to actions that are scaled to [-1, 1].
    std *= float(np.mean(action_space.high - action_space.low)) / 2
  return {
    "learning_rate": rate
    if algorithm.lr_schedule != "linear"
    else (lambda remaining: remaining * rate),
    "n_steps": length,
    "batch_size": algorithm.minibatch_size or config.num_envs * length,
    "n_epochs": algorithm.update_epochs,
    "gamma": algorithm.discount,
    "gae_lambda": algorithm.gae_lambda,
    "clip_range": algorithm.clip_ratio or math.inf,
    "clip_range_vf": algorithm.value_clip,
    "normalize_advantage": algorithm.normalize_advantage,
    "ent_coef": algorithm.entropy_coef,
    "vf_coef": algorithm.value_coef,
    "max_grad_norm": algorithm.max_grad_norm or math.inf,
    "policy_kwargs": {
      "net_arch": {"pi": list(network.policy_layers), "vf": list(network.value_layers)},
      "share_features_extractor": network.share_core,
      "ortho_init": network.initializer == "orthogonal",
      "log_std_init": math.log(std),
      "optimizer_kwargs": {"eps": algorithm.adam_epsilon},
    },
  }


def normalization(config: config_lib.Config) -> dict[str, Any]:
  """Returns the arguments of VecNormalize that correspond to a config."""
  algorithm = config.algorithm
  return {
    "norm_obs": algorithm.normalize_observ,
    "clip_obs": algorithm.observ_clip,
    "norm_reward": algorithm.reward_scale == "return",
    "clip_reward": algorithm.reward_clip or math.inf,
    "gamma": algorithm.discount,
  }


def train(config: config_lib.Config, matched: bool) -> dict[str, Any]:
  """Trains for the number of steps of a config.

  Args:
    config: Configuration of the run.
    matched: Whether to apply the settings of the config.

  Returns:
    Duration of training, "seconds", and the learning curve, "points", see
    `points`.
  """
  stable_baselines3 = library()
  import torch
  from stable_baselines3.common import monitor, vec_env

  start = time.perf_counter()
  with tempfile.TemporaryDirectory() as folder:
    env = vector_env(config, config.num_envs if matched else 1, folder)
    arguments = {}
    if matched:
      arguments = settings(config, env.action_space)
      arguments["policy_kwargs"]["activation_fn"] = getattr(
        torch.nn, ACTIVATIONS[config.network.activation]
      )
      env = vec_env.VecNormalize(env, **normalization(config))
    stable_baselines3.PPO(
      policy(env.observation_space), env, device="cpu", seed=config.seed, **arguments
    ).learn(config.steps)
    seconds = time.perf_counter() - start
    env.close()
    episodes = monitor.load_results(folder)
  return {"seconds": seconds, "points": points(episodes, config.every("report_every"))}


def points(episodes: pd.DataFrame, interval: int) -> list[dict[str, float]]:
  """Returns the points of a learning curve.

  Args:
    episodes: Table with a row for each episode, in order of time. The columns
      are the return "r", the length "l" and the end "t" in seconds since the
      start of training.
    interval: Environment steps between two points.

  Returns:
    One point for each interval, with the end of the last episode, "seconds",
    and the mean of the unnormalized returns, "return".
  """
  intervals = (episodes["l"].cumsum() - 1) // interval
  curve = episodes.groupby(intervals).agg({"t": "last", "r": "mean"})
  return [
    {"seconds": seconds, "return": score}
    for seconds, score in zip(curve["t"], curve["r"], strict=True)
  ]


def main(argv: list[str] | None = None):
  """Trains Stable-Baselines3 and prints its learning curve."""
  parser = command_line.make_parser(__doc__, config="hopper")
  parser.add_argument("--steps", metavar="N", help="environment steps; None: the config's")
  parser.add_argument("--seed", metavar="N", default="0", help="random seed")
  parser.add_argument("--matched", action="store_true", help="apply the settings of the config")
  args = parser.parse_args(argv)
  changes = [f"seed={args.seed}"]
  if args.steps:
    changes.append(f"steps={args.steps}")
  config = training.load_config(args.config, changes)
  print(json.dumps(train(config, args.matched)))


if __name__ == "__main__":
  main()
