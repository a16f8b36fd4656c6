"""robots/h1-v0: Unitree H1; a humanoid with 19 joints.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import go1

CONFIG = go1.CONFIG.override({"env.id": "robots/h1-v0"})
