"""robots/barkour-v0: Google Barkour vB; four legs.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import go1

CONFIG = go1.CONFIG.override({"env.id": "robots/barkour-v0"})
