"""All policies play episodes with the same seeds, of different lengths."""

import pytest

from agents import build
from agents import config as config_lib
from agents.commands.shared import rollout_policy
from agents.environments.data import episode_data
from agents.ops import random
from agents.training import loop as loop_lib
from agents.training.run_folder import run_folder

_CONFIG = config_lib.Config().override(
  {
    "env.id": "CartPole-v1",
    "steps": 512,
    "num_envs": 4,
    "eval_episodes": 2,
    "env_processes": False,
    "eager": True,
    "checkpoint_every": 128,
    "algorithm.learning_rate": 1e-2,
    "algorithm.update_epochs": 2,
  }
)


@pytest.mark.slow
def test_policies_play_the_same_episodes_in_order(tmp_path):
  folder = run_folder.create(str(tmp_path), "x", _CONFIG)
  loop = loop_lib.Loop(build.trainer(_CONFIG, None), folder, bool)
  loop.start()
  loop.run()
  paths = sorted(folder.checkpoints.glob("checkpoint-*.npz"))
  rollouts = rollout_policy.play(folder, paths, 4, 2, explore=False)
  seed = random.stream(_CONFIG.seed, "eval")
  seeds = [
    episode_data.episode_seed(seed, index, number) for number in range(2) for index in range(2)
  ]
  assert rollouts[0].step == 0 and len(rollouts) == len(paths)
  lengths = set()
  for rollout in rollouts:
    assert [episode.seed for episode in rollout.episodes] == seeds
    lengths |= {episode.length for episode in rollout.episodes}
  assert len(lengths) > 3  # The policies differ.
  folder.config = _CONFIG.override({"network.policy_layers": [5]})
  with pytest.raises(config_lib.ConfigError, match="do not fit: .* model"):
    rollout_policy.play(folder, paths[-1:], 4, 2, explore=False)
  folder.config = _CONFIG
  (sampled,) = rollout_policy.play(folder, paths[-1:], 4, 2, explore=True)
  assert sampled.episodes != rollouts[-1].episodes  # Actions differ.
