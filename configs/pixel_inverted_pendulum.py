"""InvertedPendulum-v5: the policy observes rendered images only.

The value network receives the state of the simulation instead (Pinto et al.
2018), which makes learning faster and cheaper. The exported policy needs images
only. Stacked frames make speeds visible.
Needs `pip install 'batched-ppo[pixels]'`.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "InvertedPendulum-v5",
    "env.kwargs": {"render_mode": "rgb_array", "width": 64, "height": 64},
    "env.wrappers": [{"Pixels": {"size": [64, 64], "keep_state": True}}],
    "steps": 300_000,
    "num_envs": 16,
    "network.policy_observ": ["pixels"],
    "network.value_observ": ["state"],
    "network.frame_stack": 3,
    "algorithm.segment_length": 64,
    "algorithm.update_epochs": 4,
    "algorithm.minibatch_size": 256,
  }
)

EXPECTED = dict(scores=(1000,), interval=(1000, 1000), minutes=20.1)
