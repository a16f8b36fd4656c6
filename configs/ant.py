"""Ant-v5: four legs and 105 observations.

Held by the KL divergence, the step size scores higher than by schedule."""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Ant-v5",
    "double_buffering": True,
    "algorithm.lr_schedule": "kl_adaptive",
})

EXPECTED = configs.Expected(
    score=3315, std=None, seeds=1, minutes=3.5)
