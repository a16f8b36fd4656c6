"""HalfCheetah-v5: never falls, so all episodes last 1000 steps.

Each update learns from 2048 steps, as by default, but of 512 different moments:
all eight tuning seeds then make more than 7400. With 256 environments and
segments of 8 steps they make 5489 to 8727, with 128 and 16, 5475 to 7796.
docs/results.md has all trials. The first whole episodes of training end after
513,000 steps; until then evaluations say what is learned.
"""

from agents.configs import default

from agents import configs

CONFIG = default.CONFIG.override({
    "env.id": "HalfCheetah-v5",
    "num_envs": 512,
    "algorithm.segment_length": 4,
    "algorithm.minibatch_size": 256,
    "algorithm.update_epochs": 7,
    "algorithm.learning_rate": 8e-4,
    "algorithm.gae_lambda": 0.98,
    "algorithm.normalize_advantage": False,
})

EXPECTED = configs.Expected(
    score=7418, std=631, seeds=5, minutes=0.9)
