"""The same episodes for every policy, however long each makes them."""

import pytest

from agents import build
from agents import config as config_lib
from agents.commands import rollout_policy
from agents.environments.data import episodes
from agents.ops import random
from agents.training import loop as loop_lib
from agents.training.run_folder import run_folder

_CONFIG = config_lib.Config().override({
    "env.id": "CartPole-v1", "steps": 4_000, "num_envs": 4, "eval_episodes": 2,
    "env_processes": False, "checkpoint_every": 1_000,
    "algorithm.learning_rate": 3e-3})


@pytest.mark.slow
def test_episodes_are_in_order_of_their_number(tmp_path):
  folder = run_folder.create(str(tmp_path), "x", _CONFIG)
  loop = loop_lib.Loop(build.trainer(_CONFIG, None), folder, bool)
  loop.start()
  loop.run()
  paths = sorted(folder.checkpoints.glob("*.npz"))
  played = rollout_policy.play(folder, paths, 4, 2, explore=False)
  seed = random.stream(_CONFIG.seed, "eval")
  seeds = [episodes.episode_seed(seed, index, number)
           for number in range(2) for index in range(2)]
  assert [step for step, _ in played][0] == 0 and len(played) == len(paths)
  lengths = set()
  for _, found in played:
    assert [episode.seed for episode in found] == seeds
    lengths |= {episode.length for episode in found}
  assert len(lengths) > 3  # Policies differ.
  folder.config = _CONFIG.override({"network.policy_layers": [5]})
  with pytest.raises(config_lib.ConfigError, match="do not fit: .* model"):
    rollout_policy.play(folder, paths[-1:], 4, 2, explore=False)
  folder.config = _CONFIG
  sampled, = rollout_policy.play(folder, paths[-1:], 4, 2, explore=True)
  assert sampled.episodes != played[-1].episodes  # Of other actions.
