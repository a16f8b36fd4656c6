"""dm_control/humanoid-stand-v0: stand up with 21 joints; slow start."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/humanoid-stand-v0", "steps": 10_000_000})
