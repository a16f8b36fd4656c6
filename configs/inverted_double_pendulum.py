"""InvertedDoublePendulum-v5: balance two poles on a cart.

Policies learn to balance early. With the default settings, some policies later
lose the ability to recover from the most inclined tenth of the initial states.
Such losses are rare with unnormalized observations, large updates, a learning
rate that keeps the KL divergence constant, and an entropy bonus.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "InvertedDoublePendulum-v5",
    "algorithm.segment_length": 128,
    "algorithm.minibatch_size": 256,
    "algorithm.entropy_coef": 0.003,
    "algorithm.normalize_observ": False,
    "algorithm.lr_schedule": "kl_adaptive",
  }
)

EXPECTED = dict(scores=(9360, 9359, 9359, 9360, 9341), interval=(9347, 9360), minutes=1.3)
