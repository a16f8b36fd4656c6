"""Presets replace the algorithm and the networks of a config."""

import dataclasses

import numpy as np
import pytest
from agents.configs import presets

from agents import build, config_parsing, configs
from agents import config as config_lib
from agents.environments.making import third_party
from tests.support import config_fixtures, modes
from tests.training import scored
from tests.videos import gl_support

# Settings of the source code of 2017, under the names of `agents/config.py`.
_ALGORITHM = {
  "type": "ppo",
  "kwargs": {},
  "segment_length": None,
  "update_every": 30,
  "update_epochs": 25,
  "minibatch_size": None,
  "learning_rate": 1e-4,
  "lr_schedule": "constant",
  "adam_epsilon": 1e-8,
  "max_grad_norm": None,
  "discount": 0.995,
  "gae_lambda": 1.0,
  "recompute_advantages": False,
  "normalize_advantage": True,
  "bootstrap_truncation": False,
  "clip_ratio": None,
  "kl_target": 0.01,
  "kl_penalty": 1.0,
  "kl_penalty_factor": 1.5,
  "kl_cutoff_factor": 2.0,
  "kl_cutoff_coef": 1000.0,
  "value_coef": 0.5,
  "value_clip": None,
  "entropy_coef": 0.0,
  "action_noise": "white",
  "symmetry": False,
  "normalize_observ": True,
  "observ_clip": 5.0,
  "observ_moments": {},
  "reward_scale": "reward",
  "reward_clip": 10.0,
}
_NETWORK = {
  "hidden": "dense",
  "hidden_kwargs": {},
  "policy_layers": [200, 100],
  "value_layers": [200, 100],
  "activation": "relu",
  "conv": "nature",
  "action_distribution": "gaussian",
  "mean_activation": "tanh",
  "state_dependent_std": False,
  "initializer": "glorot",
  "init_output_factor": 0.1,
  "init_std": 0.35,
  "frame_stack": 1,
  "recurrent": None,
  "recurrent_units": 64,
  "action_mask": None,
  "policy_observ": None,
  "value_observ": None,
  "share_core": True,
}
_TASKS = {
  "ant": {},
  "cartpole": {},
  "cheetah": {"discount": 0.99},
  "debug": {},
  "hopper": {"update_every": 60},
  "humanoid": {"update_every": 60},
  "humanoid_standup": {},
  "inverted_double_pendulum": {},
  "inverted_pendulum": {},
  "pendulum": {"minibatch_size": 1000},
  "pixel_cartpole": {},
  "pixel_inverted_pendulum": {},
  "pusher": {},
  "reacher": {"discount": 0.985, "update_every": 60},
  "swimmer": {},
  "walker": {},
}


def _paper(name):
  return presets.apply("paper", configs.load(name)[1])


def test_tasks_contain_all_configs_without_third_party_environments():
  assert {*_TASKS, "atari", "default", "dm_control", "short_segments"} == {
    name
    for name in configs.names()
    if not third_party.find(configs.load(name)[1].env.id)
    and configs.load(name)[1].env.backend == "gymnasium"
  }
  assert presets.names() == ["paper", "recurrent"]


def test_expected_settings_contain_all_fields():
  for settings, dataclass in ((_ALGORITHM, config_lib.Algorithm), (_NETWORK, config_lib.Network)):
    assert set(settings) == {field.name for field in dataclasses.fields(dataclass)}


@pytest.mark.parametrize("name", _TASKS)
def test_paper_preset_has_the_settings_of_2017(name):
  data = config_parsing.to_data(_paper(name))
  assert data["algorithm"] == {**_ALGORITHM, **_TASKS[name]}
  assert data["network"] == _NETWORK
  assert data["num_envs"] == 30


@pytest.mark.parametrize("name", configs.names())
def test_paper_preset_keeps_all_other_settings(name):
  changes = {
    "seed": 7,
    "steps": 12_345,
    "eval_every": 5,
    "num_workers": 3,
    "env.max_length": 77,
    "env.kwargs.width": 4,
    "env.frame_delta": True,
  }
  _, config = configs.load(name)
  for before in (config, config.override(changes)):
    after = config_parsing.to_data(presets.apply("paper", before))
    expected = config_parsing.to_data(before)
    for key in ("algorithm", "network", "num_envs"):
      expected[key] = after[key]
    assert after == expected


@pytest.mark.parametrize("name", configs.names())
def test_config_with_preset_round_trips_through_text(name):
  config = _paper(name)
  assert config_lib.load(config_lib.dump(config), name) == config


@pytest.mark.parametrize(
  "env_id, task_settings",
  [
    ("HalfCheetah-v4", {"discount": 0.99}),
    ("Reacher-v5", {"discount": 0.985, "update_every": 60}),
    ("Hopper-v2", {"update_every": 60}),
    ("Humanoid-v4", {"update_every": 60}),
    ("HumanoidStandup-v5", {}),
    ("my_package:Hopper", {}),
    ("my_package.hopper:Walker-v3", {}),
    ("Hopper", {}),
    ("", {}),
  ],
)
def test_task_settings_apply_to_any_version_of_an_environment(env_id, task_settings):
  config = presets.apply("paper", config_lib.Config(env=config_lib.Env(env_id)))
  assert config_parsing.to_data(config)["algorithm"] == {**_ALGORITHM, **task_settings}


def test_paper_preset_replaces_algorithm_and_networks_of_the_config():
  for name in _TASKS:
    config = configs.load(name)[1].override(
      {
        "num_envs": 2,
        "algorithm.entropy_coef": 0.5,
        "algorithm.discount": 0.5,
        "algorithm.minibatch_size": 2,
        "network.init_std": 3.0,
      }
    )
    assert presets.apply("paper", config) == _paper(name)


@pytest.mark.parametrize(
  "name, before, after",
  [
    ("cheetah", (512, 4), (64, 32)),
    ("humanoid", (128, 16), (64, 32)),
    ("hopper", (64, 32), (64, 32)),
    ("pong", (8, 128), (8, 128)),
  ],
)
def test_recurrent_preset_has_segments_of_at_least_32_steps(name, before, after):
  _, config = configs.load(name)
  recurrent = presets.apply("recurrent", config)
  for given, shape in (config, before), (recurrent, after):
    assert (given.num_envs, given.algorithm.segment_length) == shape
  assert recurrent.network.recurrent == "gru"
  assert recurrent.algorithm.minibatch_size == 512


@pytest.mark.parametrize(
  "name, message",
  [
    ("papr", "no such preset. Did you mean 'paper'?"),
    ("xyz", "Presets: paper, recurrent."),
    ("", "no such preset"),
    ("../paper", "no such preset"),
  ],
)
def test_unknown_names_are_errors_with_suggestions(name, message):
  with pytest.raises(config_lib.ConfigError) as caught:
    presets.apply(name, config_lib.Config())
  assert f"--preset {name}: " in str(caught.value)
  assert message in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", _TASKS)
def test_one_update_with_the_paper_preset_changes_the_networks(name):
  config_fixtures.config(name)  # Skips the test if a package is missing.
  # Two environments and short episodes make this test faster.
  config = _paper(name).override(
    {
      "num_envs": 2,
      "eval_episodes": 1,
      "algorithm.update_every": 3,
      "algorithm.update_epochs": 2,
      "env.max_length": 3,
    }
  )
  with modes.functions_run_eagerly(), gl_support.workers(config) as workers:
    trainer = build.trainer(config, workers)
    trainer.start()
    before = {key: np.array(x) for key, x in trainer.state().items()}
    epoch = trainer.epoch(0.0)
    after = trainer.state()
    trainer.close()
  assert scored.lengths(epoch) == [3, 3, 3] and epoch.steps == 9
  assert after["episodes/episode"].tolist() == [2, 1]
  assert after["variable/adam/iteration"] == 2
  assert np.isfinite(list(epoch.metrics.values())).all()
  for network in ("policy", "value"):
    key = f"variable/{network}/output/kernel"
    assert (before[key] != after[key]).any()
