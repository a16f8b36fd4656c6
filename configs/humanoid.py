"""Humanoid-v5: 17 joints; observations of 348 numbers.

A small lambda, and larger updates with less action noise, let the robot walk
much earlier: two tuning seeds reached 4638 and 5504 after one million steps.
With the other settings of Ant, two of five seeds did not walk by then.
docs/experiments/results.md lists all trials.
"""

from agents.configs import short_segments

CONFIG = short_segments.CONFIG.override(
  {
    "env.id": "Humanoid-v5",
    "algorithm.lr_schedule": "kl_adaptive",
    "algorithm.kl_target": 0.03,
    "algorithm.minibatch_size": 256,
    "algorithm.gae_lambda": 0.8,
    "network.init_std": 0.35,
  }
)
