"""Humanoid-v5: 17 joints and 348 observations.

A step size held by the KL divergence decides: in a prototype, with 64
environments and segments of 32 steps, one seed made 3200 after 1M steps, and
756 with a linear schedule. When it begins to walk, from 0.7M steps on, is up
to the seed. The shape of the batch is Ant's, and was not varied here.
"""

from agents.configs import short_segments

from agents import configs

CONFIG = short_segments.CONFIG.override({
    "env.id": "Humanoid-v5",
    "algorithm.lr_schedule": "kl_adaptive",
})

EXPECTED = configs.Expected(
    score=3007, std=2157, seeds=5, minutes=3.8)
