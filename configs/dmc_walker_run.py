"""dm_control/walker-run-v0: run upright."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/walker-run-v0"})

EXPECTED = dict(scores=(192,), interval=(192, 192), minutes=11.7)
