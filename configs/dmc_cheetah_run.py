"""dm_control/cheetah-run-v0: run at up to ten metres per second."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/cheetah-run-v0"})

EXPECTED = dict(scores=(783,), interval=(783, 783), minutes=5.2)
