"""Pusher-v5: a seven-joint arm; episodes of 100 steps."""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Pusher-v5",
})

EXPECTED = configs.Expected(
    score=-30.7, std=None, seeds=1, minutes=1.2)
