"""InvertedDoublePendulum-v5: balance two poles on a cart."""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "InvertedDoublePendulum-v5",
})

EXPECTED = configs.Expected(
    score=7551, std=None, seeds=1, minutes=1.7)
