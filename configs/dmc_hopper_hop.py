"""dm_control/hopper-hop-v0: hop; what is tried at first earns nothing."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({
    "env.id": "dm_control/hopper-hop-v0",
})
