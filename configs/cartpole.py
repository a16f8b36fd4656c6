"""CartPole-v1: balance a pole on a cart; discrete actions, without MuJoCo.

With few environments, a small budget contains many updates. The task is easy,
so the learning rate can be high.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "CartPole-v1",
    "steps": 100_000,
    "num_envs": 16,
    "algorithm.segment_length": 64,
    "algorithm.learning_rate": 1e-3,
  }
)

EXPECTED = dict(scores=(500, 500, 500, 500, 500), interval=(500, 500), minutes=0.2)
