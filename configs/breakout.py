"""ALE/Breakout-v5: from pixels, trained for 40 million frames."""

from agents.configs import atari

CONFIG = atari.CONFIG.override({"env.id": "ALE/Breakout-v5"})
