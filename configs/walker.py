"""Walker2d-v5: two legs, ends when it falls."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Walker2d-v5",
    "double_buffering": True,
})
