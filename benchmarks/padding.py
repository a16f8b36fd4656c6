"""How the time of an update follows the steps there are, not the room for them.

    python -m benchmarks.padding

Hopper with `--preset paper` has room for 60 episodes of 1000 steps. Episodes of
fewer steps are learned from here, in turns with full ones.
"""

from __future__ import annotations

import argparse
import statistics
import time

from benchmarks import machine

LENGTHS = (10, 30, 100, 300)
FULL = 1000


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--repeats", type=int, default=5)
  args = parser.parse_args()
  import numpy as np
  import tensorflow as tf
  from agents.configs import presets

  from agents import build
  from agents import configs
  from agents import types
  from agents.environments.making import make
  _, config = configs.load("hopper")
  config = presets.apply("paper", config)
  build.setup(config)
  env = make.MakeEnv(config.env)()
  algorithm = build.algorithm(config, env.observation_space, env.action_space)
  memory = build.memory(config)
  episodes, batch = config.algorithm.update_every, config.num_envs

  @tf.function
  def update(transitions):
    return algorithm.learn(
        memory.flatten(transitions), tf.constant(0, tf.int64),
        tf.constant(0.0))[0]["kl"]

  def seconds(length: int) -> float:
    steps = episodes // batch * length
    numbers = np.random.default_rng(0)
    def draw(*shape):
      return numbers.normal(size=(steps, batch, *shape)).astype(np.float32)
    ended = np.zeros((steps, batch), bool)
    ended[length - 1::length] = True
    transitions = types.Transition(*map(tf.constant, (
        draw(*env.observation_space.shape), draw(*env.action_space.shape),
        draw(), ended, np.zeros_like(ended),
        draw(*env.observation_space.shape), np.ones_like(ended))))
    start = time.perf_counter()
    update(transitions).numpy()
    return time.perf_counter() - start

  machine.warn_if_busy()
  seconds(FULL)  # Compiles.
  full: list[float] = []
  times: dict[int, list[float]] = {length: [] for length in LENGTHS}
  for _ in range(args.repeats):
    full.append(seconds(FULL))
    for length in LENGTHS:
      times[length].append(seconds(length))
  print(f"{FULL:5} steps an episode: {statistics.median(full):.3f} s an update")
  for length, values in times.items():
    share = statistics.median(
        value / whole for value, whole in zip(values, full, strict=True))
    print(f"{length:5} steps an episode: {statistics.median(values):.3f} s, "
          f"{share:.1%} of the time for {length / FULL:.1%} of the steps")


if __name__ == "__main__":
  main()
