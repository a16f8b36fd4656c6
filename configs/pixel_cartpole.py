"""CartPole-v1: observed as rendered images only.

Stacked frames make speeds visible. Rendering and convolutions take most of the
time. Therefore this config uses fewer environments, fewer epochs and larger
minibatches than the default settings, and computes advantages once per update,
like the config of Atari. The networks divide pixels by 255 instead of
normalizing observations. Actions and values follow the convolutional network
without hidden layers of their own: with such layers, one of three seeds learned
nothing. Frames are resized before the conversion to gray, which is slow for
large frames.
Needs `pip install 'batched-ppo[pixels]'`.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.id": "CartPole-v1",
    "env.kwargs": {"render_mode": "rgb_array"},
    "env.wrappers": [
      {"AddRenderObservation": {"render_only": True}},
      {"ResizeObservation": {"shape": [84, 84]}},
      {"GrayscaleObservation": {}},
    ],
    "steps": 300_000,
    "num_envs": 16,
    "network.frame_stack": 4,
    "network.policy_layers": [],
    "network.value_layers": [],
    "algorithm.segment_length": 64,
    "algorithm.update_epochs": 4,
    "algorithm.minibatch_size": 256,
    "algorithm.recompute_advantages": False,
    "algorithm.normalize_observ": False,
  }
)

EXPECTED = dict(scores=(402, 426), interval=(402, 426), minutes=32.0)
