"""Reacher-v5: a two-joint arm; episodes of 50 steps.

Advantages as they are, and little noise at first: -3.6 against -4.3 on two
tuning seeds each.
"""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Reacher-v5",
    "algorithm.normalize_advantage": False,
    "network.init_std": 0.3,
})

EXPECTED = configs.Expected(
    score=-4.3, std=0.4, seeds=5, minutes=1.1)
