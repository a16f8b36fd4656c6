"""InvertedPendulum-v5: balance one pole on a cart."""

from agents.configs import default

from agents import configs

CONFIG = default.CONFIG.override({
    "env.id": "InvertedPendulum-v5",
})

EXPECTED = configs.Expected(
    score=1000, std=0, seeds=5, minutes=1.0)
