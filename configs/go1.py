"""robots/go1-v0: Unitree Go1; four legs walk with commanded velocities.

The policy observes what sensors measure, the value network what the simulation
knows. docs/robots.md describes the task and its trials.
Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "robots/go1-v0",
    "steps": 8_000_000,
    "num_envs": 128,
    "network.policy_observ": ["state"],
    "network.value_observ": ["privileged_state"],
    "network.policy_layers": [128, 128],
    "network.value_layers": [128, 128],
    "network.activation": "elu",
    "network.init_std": 0.3,
    "algorithm.minibatch_size": 512,
    "algorithm.update_epochs": 5,
    "algorithm.discount": 0.98,
    "algorithm.lr_schedule": "kl_adaptive",
    "algorithm.kl_target": 0.02,
  }
)
