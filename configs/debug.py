"""Trains on MuJoCo for a few seconds, to check the installation."""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "InvertedPendulum-v5",
    "steps": 8_192,
    "num_envs": 8,
    "algorithm.segment_length": 64,
    "eval_episodes": 4,
  }
)
