"""What it is worth to step the robots of a worker at once.

    python -m benchmarks.robots --configs cheetah,walker,hopper,ant,humanoid

In one process, in turns: a block of environments as workers have it, the same
with each environment stepping for itself, and plain loops. Actions are random,
so episodes are those of a policy that has not learned yet.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time

# As workers have it; before NumPy is imported.
os.environ["OMP_NUM_THREADS"] = "1"

import gymnasium
import numpy as np

from agents import config as config_lib
from agents import configs
from agents.environments.blocks import gymnasium_block
from agents.environments.blocks import mujoco_block
from agents.environments.data import buffer_layout
from agents.environments.data import episodes
from agents.environments.making import make
from benchmarks import machine
from benchmarks import stretch as stretch_lib
from benchmarks import tables


class _Block:
  """Plays a stretch in a block of its own, which is closed by `close`."""

  def __init__(self, stretch: stretch_lib.Stretch, env: gymnasium.Env,
               alone: bool):
    size = stretch.action.shape[1]
    spaces = env.observation_space, env.action_space
    buffer = np.zeros(buffer_layout.batch_bytes(size, *spaces), np.uint8)
    self._arrays = buffer_layout.batch_views(buffer, size, *spaces)
    self._block = gymnasium_block.Block(
        [make.MakeEnv(stretch.config)] * size, 0, spaces, self._arrays,
        stretch.run_seed)
    self._actions = stretch.action
    self._seeds = [episodes.episode_seed(stretch.run_seed, index, 0)
                   for index in range(size)]
    self.close = self._block.close
    if alone:  # As they are once somebody has reached into one.
      self._block.get("spec", [True] + [False] * (size - 1))

  def play(self) -> float:
    """Play from the first resets on and return steps per second."""
    self._block.reset(self._seeds)
    self._arrays["active"][:] = True
    start = time.perf_counter()
    for action in self._actions:
      self._arrays["action"][:] = action
      self._block.step_wait()
    return self._actions[..., 0].size / (time.perf_counter() - start)


def measure(env: gymnasium.Env, config: config_lib.Env, size: int, steps: int,
            rounds: int) -> list[str]:
  """Return the cells of an environment's row."""
  actions = np.random.default_rng(0).normal(
      0, 0.5, (steps, size, *env.action_space.shape)).astype(np.float32)
  stretch = stretch_lib.Stretch(config, 0, actions)
  with contextlib.ExitStack() as stack:
    blocks = [stack.enter_context(contextlib.closing(
        _Block(stretch, env, alone))) for alone in (False, True)]
    players = [*blocks, stretch_lib.Loop(stretch, 0, size)]
    found = [[player.play() for player in players] for _ in range(rounds)]
  once, alone, loops = map(statistics.median, zip(*found, strict=True))
  def ratio(other):
    return statistics.median(row[0] / row[other] for row in found)
  return [f"{once:,.0f}", f"{alone:,.0f}", f"{loops:,.0f}",
          f"{ratio(1):.2f}", f"{ratio(2):.2f}"]


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--configs", default="cheetah",
                      help="one or more, such as cheetah,walker,hopper")
  parser.add_argument("--envs", type=int, default=32, help="of a worker")
  parser.add_argument("--steps", type=int, default=100, help="of a turn")
  parser.add_argument("--rounds", type=int, default=5,
                      help="of everything in turns")
  args = parser.parse_args(argv)
  chosen = []
  for name in args.configs.split(","):
    config = configs.load(name)[1].env
    env = make.MakeEnv(config)()
    if not mujoco_block.of([env]):
      parser.error(
          f"--configs {name}: {config.id} is not stepped at once, so there is "
          "nothing to compare. Choose of cheetah, walker, hopper, ant, "
          "humanoid.")
    chosen.append((name, env, config))
  machine.warn_if_busy()
  rows = [[name, *measure(env, config, args.envs, args.steps, args.rounds)]
          for name, env, config in chosen]
  print(tables.markdown(
      ["steps/s", "at once", "each alone", "plain loops", "÷ alone",
       "÷ loops"], rows))


if __name__ == "__main__":
  main()
