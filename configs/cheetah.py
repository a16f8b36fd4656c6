"""HalfCheetah-v5: never falls, so all episodes last 1000 steps."""

from agents import configs
from agents.configs import locomotion

CONFIG = locomotion.CONFIG.override({
    "env.id": "HalfCheetah-v5",
})

EXPECTED = configs.Expected(
    score=6190, std=839, seeds=6, minutes=1.3)
