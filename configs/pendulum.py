"""Pendulum-v1: swing a pendulum up; without MuJoCo.

Actions affect rewards within a second, so the discount is lower. Few steps are
sufficient, so the learning rate is higher.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "Pendulum-v1",
    "steps": 300_000,
    "num_envs": 16,
    "algorithm.segment_length": 128,
    "algorithm.learning_rate": 1e-3,
    "algorithm.discount": 0.95,
  }
)

EXPECTED = dict(scores=(-173, -158, -172, -150, -172), interval=(-173, -153), minutes=0.3)
