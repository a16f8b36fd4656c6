"""Builds a `MujocoBlock` and a `GymnasiumBlock` of the same environments."""

import numpy as np

from agents import config as config_lib
from agents.environments.blocks import gymnasium_block, mujoco_block
from agents.environments.data import buffer_layout, episode_data
from agents.environments.making import make

SEED, SIZE = 3, 4
SEEDS = [episode_data.episode_seed(SEED, index, 0) for index in range(SIZE)]
TASKS = ["HalfCheetah", "Walker2d", "Hopper", "Ant", "Humanoid"]


def constructor(task, **options):
  """Returns the constructor of a task with at most 30 steps per episode."""
  return make.MakeEnv(config_lib.Env(f"{task}-v5", max_length=30, **options))


def pair(task, tolerant=False, **options):
  """Returns a `MujocoBlock` and a `GymnasiumBlock`, each with its arrays.

  Args:
    task: Name of the task, without a version.
    tolerant: See `GymnasiumBlock`.
    options: Fields of `config.Env`.
  """
  constructors = make.staggered(constructor(task, **options).config, SIZE, SEED)
  return [
    block(block_class, constructors, tolerant)
    for block_class in (mujoco_block.MujocoBlock, gymnasium_block.GymnasiumBlock)
  ]


def block(block_class, constructors, tolerant=False):
  """Returns a block of `SIZE` environments after a reset, and its arrays."""
  env = constructors[0]()
  env.close()
  spaces = env.observation_space, env.action_space
  layout = buffer_layout.batch_layout(SIZE, *spaces)
  arrays = layout.views(np.zeros(layout.num_bytes, np.uint8))
  stepped = block_class(constructors, 0, spaces, arrays, SEED, tolerant)
  stepped.reset(SEEDS)
  arrays["active"][:] = True
  return stepped, arrays


def actions(arrays, num_steps):
  """Returns random actions of shape [num_steps, SIZE, ...]."""
  # Growing actions make some robots fall, but not all.
  scale = np.linspace(0.1, 1.5, num_steps)[:, None, None]
  return (
    np.random.default_rng(0).normal(0, 1, (num_steps, *arrays["action"].shape)) * scale
  ).astype(np.float32)


def step(block, arrays, action):
  """Steps a block with an action of shape [SIZE, ...].

  Returns:
    The reports of the step, and the bytes of each array by name, without the
    measured times.
  """
  arrays["action"][:] = action
  reports = block.step()
  return reports, {name: array.tobytes() for name, array in arrays.items() if name != "seconds"}
