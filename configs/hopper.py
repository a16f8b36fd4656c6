"""Hopper-v5: one leg, ends when it falls."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Hopper-v5",
    "double_buffering": True,
})
