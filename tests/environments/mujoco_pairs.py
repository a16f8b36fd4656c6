"""Blocks that step robots at once, beside ones that step each for itself."""

import numpy as np

from agents import config as config_lib
from agents.environments.blocks import gymnasium_block
from agents.environments.blocks import mujoco_block
from agents.environments.data import buffer_layout
from agents.environments.data import episodes
from agents.environments.making import make

SEED, SIZE = 3, 4
SEEDS = [episodes.episode_seed(SEED, index, 0) for index in range(SIZE)]
KINDS = ["HalfCheetah", "Walker2d", "Hopper", "Ant", "Humanoid"]


def constructor(kind, **options):
  return make.MakeEnv(config_lib.Env(f"{kind}-v5", max_length=30, **options))


def policy_and_value(kind, monkeypatch, tolerant=False, **options):
  """Return two blocks of the same robots, each with its arrays."""
  env = constructor(kind, **options).config
  constructors = make.staggered(env, SIZE, SEED)
  return [_block(constructors, tolerant, monkeypatch, alone)
          for alone in (False, True)]


def _block(constructors, tolerant, monkeypatch, alone):
  env = constructors[0]()
  env.close()
  spaces = env.observation_space, env.action_space
  buffer = np.zeros(buffer_layout.batch_bytes(SIZE, *spaces), np.uint8)
  arrays = buffer_layout.batch_views(buffer, SIZE, *spaces)
  with monkeypatch.context() as patch:
    if alone:
      patch.setattr(mujoco_block, "of", lambda envs: None)
    made = gymnasium_block.Block(constructors, 0, spaces, arrays, SEED, tolerant)
  assert (made._robots is None) == alone
  made.reset(SEEDS)
  arrays["active"][:] = True
  return made, arrays


def actions(arrays, steps):
  """Return actions of shape [steps, SIZE, ...]."""
  # Stronger ones in later steps: some of the robots fall, others don't.
  scale = np.linspace(0.1, 1.5, steps)[:, None, None]
  return (np.random.default_rng(0).normal(
      0, 1, (steps, *arrays["action"].shape)) * scale).astype(np.float32)


def step(made, arrays, action):
  """Return everything that a step leaves behind, but how long it took."""
  arrays["action"][:] = action
  reports = made.step_wait()
  return reports, {name: array.tobytes() for name, array in arrays.items()
                   if name != "seconds"}
