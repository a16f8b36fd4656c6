"""Speed of other libraries in the task of a config.

Each function of PEERS prepares a measurement: it takes a config and recorded
actions, and returns a function that measures steps per second.
`benchmarks.throughput` runs each of them in a process of its own.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.adapters import vector_env
from agents.environments.making import make
from agents.environments.workers import pool
from benchmarks.common import measuring_process
from benchmarks.common import training
from benchmarks.peers import action_replay
from benchmarks.peers import sb3

Measurement = Callable[[], float]  # Returns steps per second.


def step_vector_env(env_class: Callable[..., gymnasium.vector.VectorEnv],
                    config: config_lib.Config,
                    recorded: action_replay.RecordedActions) -> Measurement:
  """Measure how fast a class of vector environments replays actions.

  Args:
    env_class: Class with the constructor of `gymnasium.vector.SyncVectorEnv`.
    config: Configuration of the run.
    recorded: Actions to replay.
  """
  env = env_class([make.MakeEnv(config.env)] * config.num_envs,
                  autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
  return lambda: action_replay.replay_in_vector_env(env, recorded)


def step_envpool(config: config_lib.Config,
                 recorded: action_replay.RecordedActions) -> Measurement:
  """Measure how fast EnvPool replays actions, with a C++ thread per core.

  EnvPool draws its own initial states, so only tasks whose episodes are long
  have comparable physics. Its steps that only reset do not count.

  Args:
    config: Configuration of the run.
    recorded: Actions to replay.
  """
  import envpool
  env = envpool.make(
      config.env.id, env_type="gymnasium", num_envs=config.num_envs,
      num_threads=pool.cores())
  low, high = env.action_space.low, env.action_space.high
  actions = [np.clip(action, -1, 1) * (high - low) / 2 + (high + low) / 2
             for action in recorded.action.astype(np.float64)]

  def measure() -> float:
    env.reset()
    resets, start = 0, time.perf_counter()
    for action in actions:
      _, _, terminated, truncated, _ = env.step(action)
      resets += int(np.sum(terminated | truncated))
    seconds = time.perf_counter() - start
    return (len(actions) * config.num_envs - resets) / seconds
  return measure


def train_sb3(config: config_lib.Config,
              recorded: action_replay.RecordedActions) -> Measurement:
  """Measure how fast Stable-Baselines3 trains with the config's settings.

  All environments run in one process. Every measurement trains the same
  untrained policy for at least as many steps as were recorded.

  Args:
    config: Configuration of the run.
    recorded: Actions, of which only the number matters.
  """
  stable_baselines3 = sb3.library()
  from stable_baselines3.common import vec_env
  env = vec_env.DummyVecEnv([make.MakeEnv(config.env)] * config.num_envs)
  model = stable_baselines3.PPO(
      "MlpPolicy", env, device="cpu",
      **sb3.settings(config, env.action_space))
  untrained = copy.deepcopy(model.get_parameters())
  update = config.num_envs * config.algorithm.segment_length
  steps = update * -(-len(recorded.action) * config.num_envs // update)

  def measure() -> float:
    model.set_parameters(untrained)
    start = time.perf_counter()
    model.learn(steps)
    return steps / (time.perf_counter() - start)
  return measure


class Peer(NamedTuple):
  """Library to compare with."""

  package: str
  measurements: dict[str, Callable[..., Measurement]]  # By row of the table.

  @property
  def installed(self) -> bool:
    """Whether the package can be imported."""
    return importlib.util.find_spec(self.package) is not None


PEERS = {
    "gymnasium": Peer("gymnasium", {
        name: functools.partial(step_vector_env, env_class)
        for name, env_class in (
            ("gymnasium_sync", gymnasium.vector.SyncVectorEnv),
            ("gymnasium_async", gymnasium.vector.AsyncVectorEnv),
            ("vector_env", vector_env.VectorEnv))}),
    "sb3": Peer("stable_baselines3", {"sb3_training": train_sb3}),
    "envpool": Peer("envpool", {"envpool": step_envpool}),
}


def main(peer: str, measurement: str, path: str, config: str, *settings: str):
  """Serve a measurement for `benchmarks.throughput`.

  Args:
    peer: Name in PEERS.
    measurement: Name of one of its measurements.
    path: File with the recorded actions.
    config: Name of a config.
    settings: Changes of the config, each as KEY=VALUE.
  """
  measuring_process.serve(PEERS[peer].measurements[measurement](
      training.load_config(config, settings), action_replay.load(path)))


if __name__ == "__main__":
  main(*sys.argv[1:])
