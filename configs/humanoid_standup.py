"""HumanoidStandup-v5: like Humanoid, but starts lying on the ground."""

from agents.configs import short_segments

CONFIG = short_segments.CONFIG.override(
  {"env.id": "HumanoidStandup-v5", "algorithm.lr_schedule": "kl_adaptive"}
)

EXPECTED = dict(scores=(161909,), interval=(161909, 161909), minutes=10.3)
