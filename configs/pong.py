"""ALE/Pong-v5: from pixels, trained for 10 million frames."""

from agents.configs import atari

CONFIG = atari.CONFIG.override({"env.id": "ALE/Pong-v5", "steps": 2_500_000})
