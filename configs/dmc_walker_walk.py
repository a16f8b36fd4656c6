"""dm_control/walker-walk-v0: walk upright."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/walker-walk-v0"})

EXPECTED = dict(scores=(648,), interval=(648, 648), minutes=11.5)
