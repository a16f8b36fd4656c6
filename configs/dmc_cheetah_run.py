"""dm_control/cheetah-run-v0: run at up to ten metres per second."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/cheetah-run-v0"})
