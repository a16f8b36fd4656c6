"""robots/t1-v0: Booster T1; a humanoid with 23 joints.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import go1

CONFIG = go1.CONFIG.override({"env.id": "robots/t1-v0", "network.init_std": 0.5})
