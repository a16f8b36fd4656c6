"""Swimmer-v5: strokes pay off hundreds of steps later, so look far ahead."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Swimmer-v5",
    "algorithm.discount": 0.9999,
    "algorithm.gae_lambda": 0.98,
})
