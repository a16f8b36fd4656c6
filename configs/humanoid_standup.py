"""HumanoidStandup-v5: as humanoid, but starts lying on the ground."""

from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "HumanoidStandup-v5",
    "double_buffering": True,
    "algorithm.lr_schedule": "kl_adaptive",
})
