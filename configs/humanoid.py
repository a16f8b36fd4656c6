"""Humanoid-v5: 17 joints and 348 observations.

A step size held by the KL divergence decides whether it learns at all: 3200
after 1M steps, against 756 with a linear schedule (64 environments, segments of
32 steps, one seed)."""

from agents import configs
from agents.configs import short_segments

CONFIG = short_segments.CONFIG.override({
    "env.id": "Humanoid-v5",
    "double_buffering": True,  # Faster where steps cost: docs/performance.md.
    "algorithm.lr_schedule": "kl_adaptive",
})

EXPECTED = configs.Expected(
    score=3349, std=1095, seeds=5, minutes=4.4)
