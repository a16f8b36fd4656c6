"""Pusher-v5: an arm with seven joints; episodes of 100 steps."""

from agents.configs import default

CONFIG = default.CONFIG.override({"env.id": "Pusher-v5"})

EXPECTED = dict(score=-32.9, std=1.6, seeds=5, minutes=1.8)
