"""Training speed beside Stable-Baselines3, learning included.

    pip install -e '.[benchmarks]'
    python -m benchmarks.versus_sb3

Both train HalfCheetah-v5 with 64 environments of 32 steps, minibatches of 64
and 10 epochs, with two 64-64 tanh networks, on the CPU. They take turns, each
time in a process of their own; imports and compilation are not counted.
"""

from __future__ import annotations

import time

import configs
from benchmarks import speed
from benchmarks import turns

NUM_ENVS, SEGMENT_LENGTH, MINIBATCH, EPOCHS = 64, 32, 64, 10
SEGMENT = NUM_ENVS * SEGMENT_LENGTH


def ours(segments: int) -> float:
  """Return steps per second of this project."""
  _, config = configs.load("cheetah")
  config = config.override({
      "num_envs": NUM_ENVS, "algorithm.segment_length": SEGMENT_LENGTH,
      "algorithm.minibatch_size": MINIBATCH, "algorithm.update_epochs": EPOCHS})
  return speed.training(config, segments * SEGMENT).steps_per_second


def sb3(segments: int) -> float:
  """Return steps per second of Stable-Baselines3 in its fastest simple form."""
  import gymnasium
  import stable_baselines3
  from stable_baselines3.common import vec_env
  env = vec_env.DummyVecEnv(
      [lambda: gymnasium.make("HalfCheetah-v5")] * NUM_ENVS)
  model = stable_baselines3.PPO(
      "MlpPolicy", env, n_steps=SEGMENT_LENGTH, batch_size=MINIBATCH,
      n_epochs=EPOCHS, device="cpu")
  model.learn(SEGMENT)  # Warms up.
  start = time.perf_counter()
  model.learn(segments * SEGMENT)
  return segments * SEGMENT / (time.perf_counter() - start)


# Segments that take either some ten seconds.
SYSTEMS = {"ours": (ours, 100), "sb3": (sb3, 15)}


if __name__ == "__main__":
  turns.compare("benchmarks.versus_sb3", __doc__.splitlines()[0], SYSTEMS,
                "ours / sb3")
