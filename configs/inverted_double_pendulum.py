"""InvertedDoublePendulum-v5: balance two poles on a cart."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "InvertedDoublePendulum-v5",
})
