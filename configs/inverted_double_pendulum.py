"""InvertedDoublePendulum-v5: balance two poles on a cart.

It balances early, and then some seeds fall from where one in ten episodes
begins; with larger minibatches and an entropy bonus two of four tuning seeds
did not. Not settled, see docs/results.md.
"""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "InvertedDoublePendulum-v5",
    "algorithm.minibatch_size": 256,
    "algorithm.entropy_coef": 0.003,
})

EXPECTED = configs.Expected(
    score=8201, std=1754, seeds=4, minutes=1.7)
