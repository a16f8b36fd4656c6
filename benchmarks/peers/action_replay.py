"""A recorded stretch of episodes, and processes that play it again on demand.

What is compared has to step the same physics: a running cheetah costs more than
one that lies on its back. So a trained policy plays once, from seeded resets,
and everything else replays its actions.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.data import episodes
from agents.environments.making import action_scaling
from agents.environments.making import make


class Stretch(NamedTuple):
  """T steps of B environments."""

  config: config_lib.Env
  run_seed: int  # From which the episodes' seeds are derived.
  action: np.ndarray  # [T, B, ...], as the agent gave them.


class Loop:
  """Plain environments `first` to `last` of a stretch, one after the other."""

  def __init__(self, stretch: Stretch, first: int, last: int):
    self._stretch = stretch
    self._range = range(first, last)
    constructor = make.MakeEnv(stretch.config)
    self._envs = [constructor() for _ in self._range]
    convert = action_scaling.action_converter(self._envs[0].action_space)
    self._actions = [convert(action[first:last]) for action in stretch.action]

  def play(self) -> float:
    """Play from the first resets on and return steps per second."""
    seed = self._stretch.run_seed
    number = [0] * len(self._envs)
    for env, index in zip(self._envs, self._range, strict=True):
      env.reset(seed=episodes.episode_seed(seed, index, 0))
    start = time.perf_counter()
    for actions in self._actions:
      for offset, env in enumerate(self._envs):
        _, _, terminated, truncated, _ = env.step(actions[offset])
        if terminated or truncated:
          number[offset] += 1
          env.reset(seed=episodes.episode_seed(
              seed, self._range[offset], number[offset]))
    return len(self._actions) * len(self._envs) / (
        time.perf_counter() - start)


def play_vector_env(env: gymnasium.vector.VectorEnv, stretch: Stretch
                    ) -> float:
  """Play a stretch on an environment that resets by itself.

  It begins as the recorded episodes did; those that follow have other seeds.
  """
  convert = action_scaling.action_converter(env.single_action_space)
  actions = [np.array(convert(action)) for action in stretch.action]
  env.reset(seed=[episodes.episode_seed(stretch.run_seed, index, 0)
                  for index in range(env.num_envs)])
  start = time.perf_counter()
  for action in actions:
    env.step(action)
  return stretch.action.shape[0] * stretch.action.shape[1] / (
      time.perf_counter() - start)


class Child:
  """A process that measures whenever it is asked to, and sleeps in between.

  Args:
    module: Where `serve` is called with what it measures.
    arguments: Of its command line.
  """

  def __init__(self, module: str, *arguments: str):
    self._process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

  def ask(self):
    """Begin to measure."""
    assert self._process.stdin
    self._process.stdin.write("\n")
    self._process.stdin.flush()

  def answer(self) -> float:
    """Return what was measured."""
    assert self._process.stdout
    line = self._process.stdout.readline()
    if not line:
      raise RuntimeError(f"{self._process.args} failed.")
    return float(line)

  def close(self):
    assert self._process.stdin
    self._process.stdin.close()
    self._process.wait()


def serve(measure: Callable[[], float]):
  """Measure once for each line of the standard input."""
  out = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # What others print must not be taken for an answer.
  for _ in sys.stdin:
    print(measure(), file=out, flush=True)


def save(stretch: Stretch, path: str):
  with open(path, "wb") as file:
    pickle.dump(stretch._asdict(), file)


def load(path: str) -> Stretch:
  """Read what this same benchmark has just written."""
  with open(path, "rb") as file:
    return Stretch(**pickle.load(file))


if __name__ == "__main__":
  serve(Loop(load(sys.argv[1]), *map(int, sys.argv[2:])).play)
