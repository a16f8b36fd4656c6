"""Reacher-v5: a two-joint arm; episodes of 50 steps.

Advantages as they are, and little noise at first: -3.6 against -4.3 on two
tuning seeds each, in ten episodes. Smaller minibatches, so more gradient
steps, and advantages by returns of all of a segment, discounted as in 2017:
-3.5 against -3.9 on four tuning seeds, in 100 episodes; with minibatches of
64, these made -3.8.
"""

from agents.configs import default

from agents import configs

CONFIG = default.CONFIG.override({
    "env.id": "Reacher-v5",
    "algorithm.minibatch_size": 32,
    "algorithm.discount": 0.985,
    "algorithm.gae_lambda": 1.0,
    "algorithm.normalize_advantage": False,
    "network.init_std": 0.3,
})

EXPECTED = configs.Expected(
    score=-3.5, std=0.2, seeds=5, minutes=1.1)
