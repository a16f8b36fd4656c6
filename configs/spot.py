"""robots/spot-v0: Boston Dynamics Spot; four legs.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import go1

CONFIG = go1.CONFIG.override({"env.id": "robots/spot-v0"})
