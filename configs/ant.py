"""Ant-v5: four legs and 105 observations.

Held by the KL divergence, the step size scores higher than by schedule."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Ant-v5",
    "double_buffering": True,
    "algorithm.lr_schedule": "kl_adaptive",
})
