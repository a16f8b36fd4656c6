"""InvertedPendulum-v5: balance one pole on a cart."""

from agents.configs import default

CONFIG = default.CONFIG.override({"env.id": "InvertedPendulum-v5"})

EXPECTED = dict(score=1000, std=0, seeds=5, minutes=1.0)
