"""HumanoidStandup-v5: as humanoid, but starts lying on the ground."""

from agents.configs import locomotion

CONFIG = locomotion.CONFIG.override({
    "env.id": "HumanoidStandup-v5",
    "double_buffering": True,
    "algorithm.lr_schedule": "kl_adaptive",
    "algorithm.minibatch_size": 64,
})
