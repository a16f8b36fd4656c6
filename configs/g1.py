"""robots/g1-v0: Unitree G1; a humanoid with 29 joints.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import go1

CONFIG = go1.CONFIG.override({"env.id": "robots/g1-v0", "network.init_std": 0.5})
