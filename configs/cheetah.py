"""HalfCheetah-v5: never falls, so all episodes last 1000 steps.

Each update learns from 2048 steps, like the default settings, but from 512
episodes at different moments. All eight tuning seeds reach returns above 7400
with these settings. 256 environments with segments of 8 steps reach 5489 to
8727, and 128 environments with segments of 16 steps reach 5475 to 7796.
docs/experiments/results.md lists all trials. The first training episode with a
score ends after 512,000 steps. Until then, only evaluations show progress.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "HalfCheetah-v5",
    "num_envs": 512,
    "algorithm.segment_length": 4,
    "algorithm.minibatch_size": 256,
    "algorithm.update_epochs": 7,
    "algorithm.learning_rate": 8e-4,
    "algorithm.gae_lambda": 0.98,
    "algorithm.normalize_advantage": False,
  }
)

EXPECTED = dict(scores=(6484, 7336, 7779, 8175, 7315), interval=(6761, 8043), minutes=0.9)
