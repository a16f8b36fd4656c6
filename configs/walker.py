"""Walker2d-v5: two legs, ends when it falls.

With a step size that follows the KL divergence, the seeds differ less.
"""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Walker2d-v5",
    "double_buffering": True,  # Faster where steps cost: docs/performance.md.
    "algorithm.lr_schedule": "kl_adaptive",
})

EXPECTED = configs.Expected(
    score=3828, std=378, seeds=5, minutes=1.9)
