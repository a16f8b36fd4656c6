import json
import math

import gymnasium
import numpy as np
import pytest
from agents.configs import presets

from agents import config as config_lib
from benchmarks.common import machine
from benchmarks.peers import sb3

CONFIG = config_lib.Config()
UNIT = gymnasium.spaces.Box(-1, 1, (2,), np.float32)


def test_settings_have_the_values_of_the_config():
  config = CONFIG.override({"network.value_layers": [32], "algorithm.value_clip": 0.3})
  settings = sb3.settings(config, UNIT)
  assert settings["learning_rate"](0.5) == pytest.approx(1.5e-4)
  assert settings["n_steps"] == 32
  assert settings["batch_size"] == 64
  assert settings["clip_range_vf"] == 0.3
  policy = settings["policy_kwargs"]
  assert policy["net_arch"] == {"pi": [64, 64], "vf": [32]}
  assert policy["log_std_init"] == pytest.approx(math.log(0.6))


def test_disabled_settings_have_no_effect():
  config = CONFIG.override(
    {
      "algorithm.minibatch_size": None,
      "algorithm.clip_ratio": None,
      "algorithm.max_grad_norm": None,
      "algorithm.lr_schedule": "constant",
    }
  )
  settings = sb3.settings(config, UNIT)
  assert settings["learning_rate"] == 3e-4
  assert settings["batch_size"] == 64 * 32
  assert settings["clip_range"] == settings["max_grad_norm"] == math.inf


def test_initial_deviation_is_in_units_of_the_actions():
  space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)
  settings = sb3.settings(CONFIG, space)
  assert settings["policy_kwargs"]["log_std_init"] == pytest.approx(math.log(1.2))
  sb3.settings(CONFIG, gymnasium.spaces.Discrete(2))


def test_normalization_has_the_values_of_the_config():
  assert sb3.normalization(CONFIG) == {
    "norm_obs": True,
    "clip_obs": 10.0,
    "norm_reward": True,
    "clip_reward": math.inf,
    "gamma": 0.99,
  }


def test_whole_episodes_are_refused():
  with pytest.raises(config_lib.ConfigError, match="learns from segments"):
    sb3.settings(presets.apply("paper", CONFIG), UNIT)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--matched",)])
def test_curve_has_all_episodes_and_raw_returns(options, tmp_path):
  pytest.importorskip("stable_baselines3")
  config = tmp_path / "counter.py"
  # Episodes have 4 steps with the rewards 1, 2, 3 and 4.
  config.write_text("""
from agents.configs import default

CONFIG = default.CONFIG.override({
    "env.id": "tests.toy:Counter", "env.kwargs": {"length": 4},
    "num_envs": 4, "algorithm.segment_length": 32,
    "algorithm.minibatch_size": 32, "steps": 4096, "report_every": 2048})
""")
  curve = json.loads(
    machine.python("-m", "benchmarks.peers.sb3", "--config", str(config), *options).splitlines()[-1]
  )
  assert [point["return"] for point in curve["points"]] == [10.0, 10.0]
  times = [point["seconds"] for point in curve["points"]]
  assert 0 < times[0] < times[1] <= curve["seconds"]


def test_points_are_means_over_intervals():
  pandas = pytest.importorskip("pandas")
  episodes = pandas.DataFrame({"r": [0.0, 1.0, 2.0, 3.0, 4.0], "l": [50] * 5, "t": [1, 2, 3, 4, 5]})
  assert sb3.points(episodes, 100) == [
    {"seconds": 2, "return": 0.5},
    {"seconds": 4, "return": 2.5},
    {"seconds": 5, "return": 4.0},
  ]
  assert sb3.points(episodes[:0], 100) == []


def test_images_have_a_channel_per_stacked_frame():
  pytest.importorskip("stable_baselines3")
  code = """
import sys
from agents import configs
from benchmarks.peers import sb3
config = configs.load("pixel_cartpole")[1]
env = sb3.vector_env(config, 2)
model = sb3.library().PPO(
  sb3.policy(env.observation_space), env, device="cpu", **sb3.settings(config, env.action_space)
)
print(env.observation_space.shape, sb3.policy(env.observation_space))
print(model.policy.share_features_extractor, model.predict(env.reset())[0].shape)
"""
  # PyTorch must be imported before TensorFlow.
  output = machine.python("-c", code).splitlines()
  assert output[-2:] == ["(84, 84, 4) CnnPolicy", "True (2,)"]
