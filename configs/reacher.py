"""Reacher-v5: a two-joint arm; episodes of 50 steps."""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Reacher-v5",
})

EXPECTED = configs.Expected(
    score=-5.1, std=0.5, seeds=3, minutes=1.0)
