"""CartPole-v1: seen in its pictures alone, which have to be drawn.

Speeds are seen in stacked frames. Drawing takes most of the time, and then the
convolutions: fewer environments than of numbers, and fewer passes in larger
minibatches, as with Atari. Pixels need no normalizing, they are divided by 255.
Needs `pip install 'batch-ppo[pixels]'`."""

from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "CartPole-v1",
    "env.kwargs": {"render_mode": "rgb_array"},
    "env.wrappers": [
        {"AddRenderObservation": {"render_only": True}},
        {"GrayscaleObservation": {}},
        {"ResizeObservation": {"shape": [84, 84]}},
    ],
    "steps": 300_000,
    "num_envs": 16,
    "network.frame_stack": 4,
    "algorithm.segment_length": 64,
    "algorithm.update_epochs": 4,
    "algorithm.minibatch_size": 256,
    "algorithm.normalize_observ": False,
})
