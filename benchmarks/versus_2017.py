"""Training speed of `--preset paper` beside that of the original of 2017.

    python -m benchmarks.versus_2017

The original needs TensorFlow 1, so it can't take part. What is known of it:
3,275 training steps a second on HalfCheetah, on a machine that stepped 22,000 a
second and core in a plain loop of random actions. So this measures training and
such a loop, in turns, and compares how many steps of training either system
does for each step of that loop. Imports and compilation are not counted.
"""

from __future__ import annotations

from agents.configs import presets

from agents import config as config_lib
from agents import configs
from benchmarks import speed
from benchmarks import turns

ORIGINAL = 3_275 / 22_000  # Training steps for each step of a plain loop.


def plain_loop(steps: int) -> float:
  """Return steps per second of environments in a loop, on one core."""
  return speed.simulator(_config(), steps).steps_per_second


def training(steps: int) -> float:
  """Return steps per second of training, with everything but evaluation."""
  return speed.training(_config(), steps).steps_per_second


def _config() -> config_lib.Config:
  _, config = configs.load("cheetah")
  return presets.apply("paper", config)


# Steps that take either some ten seconds.
MEASURED = {
    "training": (training, 150_000), "plain_loop": (plain_loop, 210_000)}


if __name__ == "__main__":
  turns.compare("benchmarks.versus_2017", __doc__.splitlines()[0], MEASURED,
                "ours / 2017", 1 / ORIGINAL)
