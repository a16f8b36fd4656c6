"""InvertedDoublePendulum-v5: balance two poles on a cart.

It balances early, and then the policy narrows until it falls from where some
episodes begin; an entropy bonus keeps it trying.
"""

from agents import configs
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "InvertedDoublePendulum-v5",
    "algorithm.minibatch_size": 256,
    "algorithm.entropy_coef": 0.003,
})

EXPECTED = configs.Expected(
    score=9357, std=1, seeds=2, minutes=1.7)
