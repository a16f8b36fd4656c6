"""HalfCheetah-v5: never falls, so all episodes last 1000 steps."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "HalfCheetah-v5",
})
