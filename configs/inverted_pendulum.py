"""InvertedPendulum-v5: balance one pole on a cart."""

from agents.configs import default

CONFIG = default.CONFIG.override({"env.id": "InvertedPendulum-v5"})

EXPECTED = dict(scores=(1000, 1000, 1000, 1000, 1000), interval=(1000, 1000), minutes=1.0)
