"""Atari from pixels: select a game with `--set env.id=ALE/...`.

The settings follow Schulman et al. (2017), with the changes that most
implementations make. Rewards are clipped to [-1, 1], because the size of scores
differs between games. An agent step lasts four frames, and the clip range of
PPO is small. Actions and values follow the convolutional network directly, as
in Mnih et al. (2015). Actions are not sticky. The loss of a life does not end
an episode, because Gymnasium's wrapper would then start a new game.
Needs `pip install 'batched-ppo[atari]'`.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {
    "env.kwargs": {"frameskip": 1, "repeat_action_probability": 0.0},
    "env.wrappers": [{"AtariPreprocessing": {"noop_max": 30, "frame_skip": 4, "screen_size": 84}}],
    "env.max_length": 27_000,  # 108,000 frames, or half an hour of play.
    "steps": 10_000_000,
    "num_envs": 8,
    "network.frame_stack": 4,
    "network.policy_layers": [],
    "network.value_layers": [],
    "algorithm.segment_length": 128,
    "algorithm.update_epochs": 4,
    "algorithm.minibatch_size": 256,
    "algorithm.learning_rate": 2.5e-4,
    "algorithm.recompute_advantages": False,
    "algorithm.clip_ratio": 0.1,
    "algorithm.entropy_coef": 0.01,
    "algorithm.normalize_observ": False,
    "algorithm.reward_scale": "none",
    "algorithm.reward_clip": 1.0,
  }
)
