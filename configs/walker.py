"""Walker2d-v5: two legs, ends when it falls.

Held by the KL divergence, the step size scores a little higher than by
schedule."""

from configs import default

CONFIG = default.CONFIG.override({
    "env.id": "Walker2d-v5",
    "algorithm.lr_schedule": "kl_adaptive",
})
