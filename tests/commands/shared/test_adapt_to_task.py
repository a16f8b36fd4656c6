"""`default` adapts to task and budget, below presets and the command line."""

import pytest

from agents import config as config_lib
from agents.commands.shared import adapt_to_task, merge_settings

_ADAPTED = "task and budget"


def _settings(env_id, steps, presets=(), name="default", **changes):
  return merge_settings.of_new_run(name, presets, {"env.id": env_id, "steps": steps, **changes})


def _adapted(settings):
  return {key for key, origin in settings.origins.items() if origin == _ADAPTED}


def test_budget_and_episodes_of_the_published_results_keep_the_defaults():
  settings = _settings("HalfCheetah-v5", 1_000_000)
  assert not _adapted(settings)
  assert settings.config == config_lib.Config().override({"env.id": "HalfCheetah-v5"})


@pytest.mark.parametrize(
  "steps, rate", [(1000, 1e-3), (100_000, 9e-4), (300_000, 5e-4), (1_000_000, 3e-4), (10**8, 3e-4)]
)
def test_learning_rate_falls_with_the_budget(steps, rate):
  assert adapt_to_task.learning_rate(steps) == rate


@pytest.mark.parametrize(
  "steps, length, num_envs",
  [
    (100_000, 1600, 4),
    (100_000, 1000, 8),
    (100_000, 200, 32),
    (100_000, 20, 64),
    (300_000, 1000, 16),
    (500_000, 1000, 32),
    (1_000_000, 1000, 64),
    (10**9, 1000, 64),
  ],
)
def test_every_environment_plays_several_episodes(steps, length, num_envs):
  assert adapt_to_task.number_of_envs(steps, length) == num_envs


@pytest.mark.parametrize("minibatch_size", [1, 64, 100, 2048])
@pytest.mark.parametrize("num_envs", [1, 2, 3, 10, 48, 64, 100, 1000])
def test_minibatches_divide_every_batch(num_envs, minibatch_size):
  length = adapt_to_task.segment_length(1024, num_envs, minibatch_size)
  assert length >= 1 and num_envs * length % minibatch_size == 0


@pytest.mark.parametrize(
  "changes, batch",
  [
    ({"num_envs": 10}, (10, 128)),
    ({"algorithm.minibatch_size": 2048}, (16, 128)),
    ({"algorithm.minibatch_size": None}, (16, 64)),
    ({"algorithm.minibatch_size": 100}, (16, 75)),
    ({"num_envs": 3}, (3, 384)),
    ({"num_envs": 3, "algorithm.minibatch_size": 5}, (3, 345)),
    ({"algorithm.segment_length": 10}, (64, 10)),
  ],
)
def test_batches_fit_to_settings_of_the_command_line(changes, batch):
  config = _settings("CartPole-v1", 100_000, **changes).config
  assert (config.num_envs, config.algorithm.segment_length) == batch


@pytest.mark.parametrize(
  "changes",
  [
    {"num_envs": 0},
    {"num_envs": "many"},
    {"algorithm.minibatch_size": -1},
    {"num_envs": 3, "algorithm.segment_length": 10},
  ],
)
def test_invalid_sizes_of_the_command_line_are_reported(changes):
  with pytest.raises(config_lib.ConfigError, match="num_envs|minibatch_size"):
    _settings("CartPole-v1", 100_000, **changes)


@pytest.mark.parametrize("task", ["CartPole-v1", "MountainCarContinuous-v0"])
def test_recurrent_policies_keep_the_segments_of_their_preset(task):
  config = _settings(task, 100_000, ["recurrent"]).config
  assert (config.num_envs, config.algorithm.segment_length) == (64, 32)
  assert config.algorithm.learning_rate == 9e-4


_PICTURES = {
  "env.kwargs": {"render_mode": "rgb_array"},
  "env.wrappers": [{"AddRenderObservation": {}}, {"ResizeObservation": {"shape": [84, 84]}}],
}
_WITH_STATE = {**_PICTURES, "env.wrappers": [{"AddRenderObservation": {"render_only": False}}]}


@pytest.mark.parametrize(
  "changes, minibatch, layers",
  [
    (_PICTURES, 256, ()),
    ({**_PICTURES, "algorithm.minibatch_size": 128}, 128, ()),
    ({**_PICTURES, "network.value_layers": [5]}, 256, (5,)),
    ({**_PICTURES, "network.hidden": "tests.networks.test_feed_forward:Hidden"}, 256, (64, 64)),
    (_WITH_STATE, 256, (64, 64)),
  ],
)
def test_updates_make_few_passes_over_images(changes, minibatch, layers):
  config = _settings("CartPole-v1", 100_000, **changes).config
  algorithm = config.algorithm
  assert algorithm.minibatch_size == minibatch and config.network.value_layers == layers
  assert config.num_envs * algorithm.segment_length % minibatch == 0
  assert algorithm.update_epochs == 4 and not algorithm.recompute_advantages
  assert algorithm.learning_rate == 3e-4


def test_choices_get_an_entropy_bonus():
  config = _settings("CartPole-v1", 100_000).config
  assert config.algorithm.entropy_coef == 0.01
  assert (config.num_envs, config.algorithm.segment_length) == (16, 64)
  assert config.algorithm.action_noise == "white"


def test_constant_rewards_are_explored_with_whole_episodes_of_pink_noise():
  config = _settings("MountainCarContinuous-v0", 100_000).config
  assert config.algorithm.action_noise == "pink"
  assert (config.num_envs, config.algorithm.segment_length) == (8, 1000)
  assert config.algorithm.entropy_coef == 0


@pytest.mark.parametrize("steps", [20_000, 100_000, 1_000_000])
@pytest.mark.parametrize("minibatch_size", [None, 16, 32, 64])
def test_segments_are_as_long_as_an_episode_without_rewards(steps, minibatch_size):
  changes = {"algorithm.minibatch_size": minibatch_size}
  config = _settings("MountainCarContinuous-v0", steps, **changes).config
  assert config.algorithm.minibatch_size == minibatch_size
  assert 999 <= config.algorithm.segment_length < 999 + 100
  assert config.num_envs <= 16


def test_white_noise_of_the_command_line_keeps_short_segments():
  changes = {"algorithm.action_noise": "white"}
  config = _settings("MountainCarContinuous-v0", 100_000, **changes).config
  assert (config.num_envs, config.algorithm.segment_length) == (8, 128)


def test_rare_time_limits_do_not_limit_the_environments():
  config = _settings("CartPole-v1", 1_000_000, **{"env.max_length": 100_000}).config
  assert config.num_envs == 32


def test_own_file_with_the_name_of_a_config_does_not_adapt(tmp_path):
  (tmp_path / "default.py").write_text("from agents.configs.default import CONFIG")
  assert not _adapted(_settings("CartPole-v1", 100_000, name=str(tmp_path / "default.py")))


def test_beta_distributions_keep_their_noise():
  changes = {"network.action_distribution": "beta"}
  assert _settings("MountainCarContinuous-v0", 100_000, **changes).config.algorithm == (
    _settings("LunarLanderContinuous-v3", 100_000, **changes).config.algorithm
  )


def test_command_line_and_presets_take_precedence():
  settings = _settings("CartPole-v1", 100_000, num_envs=4, **{"algorithm.entropy_coef": 0.5})
  config = settings.config
  assert (config.num_envs, config.algorithm.segment_length) == (4, 256)
  assert config.algorithm.entropy_coef == 0.5
  assert _adapted(settings) == {"algorithm.segment_length", "algorithm.learning_rate"}
  for task in ("CartPole-v1", "MountainCarContinuous-v0"):
    assert not _adapted(_settings(task, 100_000, ["paper"]))


def test_family_of_dm_control_adapts_too_and_other_configs_do_not():
  settings = _settings("CartPole-v1", 100_000, name="dm_control")
  assert "algorithm.learning_rate" in _adapted(settings)
  assert not _adapted(merge_settings.of_new_run("pendulum", [], {"steps": 100_000}))


def test_without_a_task_nothing_is_adapted():
  assert not _adapted(merge_settings.of_new_run("default", [], {"steps": 100_000}))


def test_task_that_cannot_be_built_is_a_config_error():
  with pytest.raises(config_lib.ConfigError, match="Nothing-v0"):
    _settings("Nothing-v0", 100_000)
