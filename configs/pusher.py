"""Pusher-v5: a seven-joint arm; episodes of 100 steps."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Pusher-v5",
})
