"""Pusher-v5: an arm with seven joints; episodes of 100 steps."""

from agents.configs import default

CONFIG = default.CONFIG.override({"env.id": "Pusher-v5"})

EXPECTED = dict(
  scores=(-30.39, -32.90, -34.82, -33.23, -33.30), interval=(-34.32, -31.34), minutes=1.8
)
