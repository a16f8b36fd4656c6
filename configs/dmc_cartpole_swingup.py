"""dm_control/cartpole-swingup-v0: swing a pole up and hold it."""

from agents.configs import dm_control

CONFIG = dm_control.CONFIG.override({"env.id": "dm_control/cartpole-swingup-v0"})

EXPECTED = dict(scores=(849,), interval=(849, 849), minutes=8.6)
