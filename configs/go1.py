"""Unitree Go1: four legs walk with commanded velocities on flat ground.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "agents.robots.velocity_env:VelocityEnv",
    "env.kwargs": {"robot": "go1"},
    "env.max_length": 1000,
    "steps": 10_000_000,
    "num_envs": 128,
    "network.policy_observ": ["state"],
    "network.value_observ": ["privileged_state"],
    "network.policy_layers": [128, 128],
    "network.value_layers": [128, 128],
    "network.activation": "elu",
    "network.init_std": 0.3,
    "algorithm.segment_length": 32,
    "algorithm.minibatch_size": 512,
    "algorithm.update_epochs": 5,
    "algorithm.discount": 0.97,
    "algorithm.lr_schedule": "kl_adaptive",
    "algorithm.kl_target": 0.02,
  }
)
