"""Training speed of `--preset paper` beside that of the original of 2017.

    python -m benchmarks.versus_2017

The original needs TensorFlow 1, so it can't take part. What is known of it:
3,275 training steps a second on HalfCheetah, on a machine that stepped 22,000 a
second and core in a plain loop of random actions. So this measures training and
such a loop, in turns, and compares how many steps of training either system
does for each step of that loop. Imports and compilation are not counted.
"""

from __future__ import annotations

import time

from benchmarks import turns

NUM_ENVS = 30
ORIGINAL = 3_275 / 22_000  # Training steps for each step of a plain loop.


def plain_loop(steps: int) -> float:
  """Return steps per second of environments in a loop, on one core."""
  import gymnasium
  envs = [gymnasium.make("HalfCheetah-v5", disable_env_checker=True)
          for _ in range(NUM_ENVS)]
  for env in envs:
    env.reset(seed=0)
  start = time.perf_counter()
  for _ in range(steps // NUM_ENVS):
    for env in envs:
      _, _, terminated, truncated, _ = env.step(env.action_space.sample())
      if terminated or truncated:
        env.reset()
  return steps / (time.perf_counter() - start)


def training(steps: int) -> float:
  """Return steps per second of training, with everything but evaluation."""
  import configs
  from agents import build
  from agents.environments import workers as workers_lib
  from configs import presets
  _, config = configs.load("cheetah")
  config = presets.apply("paper", config)
  build.setup(config)
  with workers_lib.Workers(workers_lib.cores()) as workers:
    trainer = build.trainer(config, workers)
    trainer.start()
    trainer.epoch(0.0)  # Compiles.
    done, start = 0, time.perf_counter()
    while done < steps:
      done += trainer.epoch(done / steps).steps
    return done / (time.perf_counter() - start)


# Steps that take either some ten seconds.
MEASURED = {
    "training": (training, 150_000), "plain_loop": (plain_loop, 210_000)}


if __name__ == "__main__":
  turns.compare("benchmarks.versus_2017", __doc__.splitlines()[0], MEASURED,
                "ours / 2017", 1 / ORIGINAL)
