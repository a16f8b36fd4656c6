"""HalfCheetah-v5: never falls, so all episodes last 1000 steps.

Minibatches of 128 learn as well as smaller ones here, in less time.
"""

from agents import configs
from agents.configs import short_segments

CONFIG = short_segments.CONFIG.override({
    "env.id": "HalfCheetah-v5",
    "algorithm.minibatch_size": 128,
})

EXPECTED = configs.Expected(
    score=6398, std=1631, seeds=5, minutes=1.3)
