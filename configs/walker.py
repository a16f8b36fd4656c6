"""Walker2d-v5: two legs, ends when it falls."""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Walker2d-v5",
    "double_buffering": True,
})

EXPECTED = configs.Expected(
    score=3400, std=684, seeds=5, minutes=1.9)
