"""Reacher-v5: a two-joint arm; episodes of 50 steps."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Reacher-v5",
})
