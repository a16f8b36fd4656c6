"""Hopper-v5: one leg, ends when it falls."""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Hopper-v5",
    "double_buffering": True,
})

EXPECTED = configs.Expected(
    score=2142, std=1122, seeds=3, minutes=2.3)
