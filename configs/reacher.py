"""Reacher-v5: a two-joint arm; episodes of 50 steps."""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Reacher-v5",
})

EXPECTED = configs.Expected(
    score=-4.3, std=1.0, seeds=2, minutes=1.0)
