"""Measures MuJoCo alone, without Python code between two steps."""

import contextlib
import time
from collections.abc import Callable

import gymnasium
import mujoco
import mujoco.rollout
import numpy as np

from agents import config as config_lib
from agents.environments.making import make

_NUM_STATES = 64


def is_supported(config: config_lib.Config) -> bool:
  """Returns whether MuJoCo alone can simulate the task of a config.

  Args:
    config: Configuration of the run.
  """
  with contextlib.closing(make.MakeEnv(config.env)()) as env:
    return _model(env) is not None


def prepare(config: config_lib.Config, num_threads: int, num_steps: int) -> Callable[[], float]:
  """Prepares to measure how fast MuJoCo simulates the robot of a config.

  C threads simulate 64 copies of the robot from resets, with random actions.

  Args:
    config: Configuration of the run.
    num_threads: Number of threads.
    num_steps: Environment steps of a measurement, rounded up to full batches.

  Returns:
    Function that returns environment steps per second.
  """
  env = make.MakeEnv(config.env)()
  model = _model(env)
  assert model is not None
  frame_skip = env.unwrapped.frame_skip * config.env.action_repeat
  states = []
  for seed in range(_NUM_STATES):
    env.reset(seed=seed)
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, env.unwrapped.data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states.append(state)
  length = -(-num_steps // _NUM_STATES)
  rng = np.random.default_rng(0)
  low, high = env.action_space.low, env.action_space.high
  control = rng.uniform(low, high, (_NUM_STATES, length, model.nu))
  control = np.repeat(control, frame_skip, 1)
  data = [mujoco.MjData(model) for _ in range(num_threads)]
  threads = mujoco.rollout.Rollout(nthread=num_threads)

  def measure() -> float:
    start = time.perf_counter()
    threads.rollout(model, data, np.array(states), control)
    return _NUM_STATES * length / (time.perf_counter() - start)

  return measure


def _model(env: gymnasium.Env) -> mujoco.MjModel | None:
  """Returns MuJoCo's model of an environment of Gymnasium, or None."""
  model = getattr(env.unwrapped, "model", None)
  has_motors = isinstance(env.action_space, gymnasium.spaces.Box)
  if isinstance(model, mujoco.MjModel) and has_motors and hasattr(env.unwrapped, "frame_skip"):
    return model
  return None
