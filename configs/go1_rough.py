"""robots/go1_rough-v0: Unitree Go1 on rough ground.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import go1

CONFIG = go1.CONFIG.override({"env.id": "robots/go1_rough-v0"})
