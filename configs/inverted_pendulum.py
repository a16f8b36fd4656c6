"""InvertedPendulum-v5: balance one pole on a cart."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "InvertedPendulum-v5",
})
