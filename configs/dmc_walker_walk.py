"""dm_control/walker-walk-v0: walk upright."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/walker-walk-v0"})
