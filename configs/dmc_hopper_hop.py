"""dm_control/hopper-hop-v0: hop; early episodes earn no reward."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/hopper-hop-v0"})

EXPECTED = dict(scores=(0.114,), interval=(0.114, 0.114), minutes=7.8)
