"""What other libraries make of the same task, each in a process of its own."""

from __future__ import annotations

import copy
import importlib.util
import sys
import time
from collections.abc import Callable

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.adapters import vector_env as vector_env_lib
from agents.environments.making import make
from benchmarks import changed
from benchmarks.peers import action_replay

# Name of the peer: (package it needs, what it measures).
PEERS = {
    "gymnasium": (
        "gymnasium", ("gymnasium_sync", "gymnasium_async", "vector_env")),
    "sb3": ("stable_baselines3", ("sb3_training",)),
    "envpool": ("envpool", ("envpool",)),
}


def installed(peer: str) -> bool:
  return importlib.util.find_spec(PEERS[peer][0]) is not None


def gymnasium_sync(config: config_lib.Config, stretch: action_replay.Stretch
                   ) -> Callable[[], float]:
  """Stepping in Gymnasium's vector environment, in one process."""
  return _gymnasium(gymnasium.vector.SyncVectorEnv, config, stretch)


def gymnasium_async(config: config_lib.Config, stretch: action_replay.Stretch
                    ) -> Callable[[], float]:
  """Stepping in Gymnasium's, a process for each environment."""
  return _gymnasium(gymnasium.vector.AsyncVectorEnv, config, stretch)


def vector_env(config: config_lib.Config, stretch: action_replay.Stretch
               ) -> Callable[[], float]:
  """Stepping in ours that returns the same as theirs, a process for each core.
  """
  return _gymnasium(vector_env_lib.VectorEnv, config, stretch)


def _gymnasium(kind, config: config_lib.Config, stretch: action_replay.Stretch
               ) -> Callable[[], float]:
  env = kind([make.MakeEnv(config.env)] * config.num_envs,
             autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
  return lambda: action_replay.play_vector_env(env, stretch)


def envpool(config: config_lib.Config, stretch: action_replay.Stretch
            ) -> Callable[[], float]:
  """Stepping in EnvPool's C++ threads, one a core.

  Its episodes begin by its own random numbers, so the physics is like ours only
  where no episode ends soon. Steps that only reset don't count.
  """
  import envpool as envpool_lib

  from agents.environments.workers import pool
  env = envpool_lib.make(
      config.env.id, env_type="gymnasium", num_envs=config.num_envs,
      num_threads=pool.cores())
  low, high = env.action_space.low, env.action_space.high
  actions = [np.clip(action, -1, 1) * (high - low) / 2 + (high + low) / 2
             for action in stretch.action.astype(np.float64)]

  def measure() -> float:
    env.reset()
    resets, start = 0, time.perf_counter()
    for action in actions:
      _, _, terminated, truncated, _ = env.step(action)
      resets += int(np.sum(terminated | truncated))
    seconds = time.perf_counter() - start
    return (len(actions) * config.num_envs - resets) / seconds
  return measure


def sb3_training(config: config_lib.Config, stretch: action_replay.Stretch
                 ) -> Callable[[], float]:
  """Training in Stable-Baselines3 with the config's settings.

  All environments are in one process. Each time a new policy learns from as
  many updates as ours.
  """
  from benchmarks.peers import sb3
  stable_baselines3 = sb3.library()
  from stable_baselines3.common import vec_env
  env = vec_env.DummyVecEnv([make.MakeEnv(config.env)] * config.num_envs)
  model = stable_baselines3.PPO(
      "MlpPolicy", env, device="cpu",
      **sb3.settings(config, env.action_space))
  untrained = copy.deepcopy(model.get_parameters())
  update = config.num_envs * config.algorithm.segment_length
  steps = update * -(-len(stretch.action) * config.num_envs // update)

  def measure() -> float:
    model.set_parameters(untrained)
    start = time.perf_counter()
    model.learn(steps)
    return steps / (time.perf_counter() - start)
  return measure


if __name__ == "__main__":
  _what, _path, _name, *_settings = sys.argv[1:]
  action_replay.serve(globals()[_what](
      changed.load(_name, _settings), action_replay.load(_path)))
