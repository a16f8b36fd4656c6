"""Ant-v5: four legs; observations of 105 numbers.

The learning rate follows the KL divergence. With a small lambda and a large KL
target, the robot learns much earlier; with a constant target, it then stops to
improve. Updates learn from 1,024 steps in minibatches of 256, which takes a
quarter of the gradient steps of the other configs.
"""

from agents.configs import short_segments

CONFIG = short_segments.CONFIG.override(
  {
    "env.id": "Ant-v5",
    "num_envs": 64,
    "algorithm.minibatch_size": 256,
    "algorithm.gae_lambda": 0.8,
    "algorithm.lr_schedule": "kl_adaptive_linear",
    "algorithm.kl_target": 0.03,
    "network.init_std": 0.35,
  }
)

EXPECTED = dict(
  scores=(4390, 3594, 3932, 3253, 4040, 4347, 3652, 4130), interval=(3619, 4239), minutes=5.0
)
