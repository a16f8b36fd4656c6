"""Measures plain loops and other libraries on the task of a config.

The functions of this module prepare a measurement: they take a config and
recorded actions, and return a function that measures steps per second.
`benchmarks.throughput` runs each measurement in its own process.
"""

import copy
import functools
import sys
import time
from collections.abc import Callable

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.adapters import vector_env
from agents.environments.making import make
from agents.environments.workers import pool
from benchmarks.common import measuring_process, training
from benchmarks.peers import action_replay, physics, sb3

Measurement = Callable[[], float]  # Returns steps per second.


def step_vector_env(
  env_class: Callable[..., gymnasium.vector.VectorEnv],
  config: config_lib.Config,
  actions: np.ndarray,
) -> Measurement:
  """Prepares to measure how fast a vector environment replays actions.

  Args:
    env_class: Class with the constructor of `gymnasium.vector.SyncVectorEnv`.
    config: Configuration of the run.
    actions: Actions of the policy, of shape [T, B, ...].
  """
  env = env_class(
    [make.MakeEnv(config.env)] * config.num_envs,
    autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
  )
  return lambda: action_replay.replay_in_vector_env(env, actions, config.seed)


def train_sb3(config: config_lib.Config, actions: np.ndarray) -> Measurement:
  """Prepares to measure how fast Stable-Baselines3 trains a config.

  All environments run in one process. Every measurement trains the same
  untrained policy for at least a fifth of the number of recorded steps.

  Args:
    config: Configuration of the run.
    actions: Array of shape [T, B, ...]; only its shape matters.
  """
  stable_baselines3 = sb3.library()
  env = sb3.vector_env(config, config.num_envs)
  model = stable_baselines3.PPO(
    sb3.policy(env.observation_space), env, device="cpu", **sb3.settings(config, env.action_space)
  )
  untrained = copy.deepcopy(model.get_parameters())
  update = config.num_envs * config.algorithm.segment_length
  steps = update * -(-len(actions) * config.num_envs // (5 * update))

  def measure() -> float:
    model.set_parameters(untrained)
    start = time.perf_counter()
    model.learn(steps)
    return steps / (time.perf_counter() - start)

  return measure


# For each library: its package, and its measurements by name of the table row.
PEERS: dict[str, tuple[str, dict[str, Callable[..., Measurement]]]] = {
  "gymnasium": (
    "gymnasium",
    {
      name: functools.partial(step_vector_env, env_class)
      for name, env_class in (
        ("gymnasium_sync", gymnasium.vector.SyncVectorEnv),
        ("gymnasium_async", gymnasium.vector.AsyncVectorEnv),
        ("vector_env", vector_env.VectorEnv),
      )
    },
  ),
  "sb3": ("stable_baselines3", {"sb3_training": train_sb3}),
}


def main(row: str, path: str, config_name: str, *settings: str):
  """Serves a measurement for `benchmarks.throughput`.

  Args:
    row: Name of a measurement in PEERS, "physics", or START-STOP for a plain
      loop over the environments from index START to STOP - 1.
    path: File with the recorded actions, written by `numpy.save`.
    config_name: Name of a config.
    settings: Changes of the config, each as KEY=VALUE.
  """
  config = training.load_config(config_name, settings)
  actions = np.load(path)
  rows = {
    name: function for _, measurements in PEERS.values() for name, function in measurements.items()
  }
  if row in rows:
    measurement = rows[row](config, actions)
  elif row == "physics":
    measurement = physics.prepare(config, pool.num_cores(), actions.shape[0] * actions.shape[1])
  else:
    measurement = action_replay.PlainLoop(config, actions, *map(int, row.split("-"))).replay
  measuring_process.serve(measurement)


if __name__ == "__main__":
  main(*sys.argv[1:])
