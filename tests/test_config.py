"""Configs are plain data, and their constructors reject invalid settings."""

import copy
import dataclasses
import math
import threading

import numpy as np
import pytest
import yaml

from agents import config as config_lib
from agents import config_parsing

# Keys that appear in commands and documentation, and therefore must not change.
_KEYS = """
    env.id env.kwargs env.max_length num_envs num_workers steps seed eval_every
    eval_episodes checkpoint_every algorithm.segment_length
    algorithm.learning_rate algorithm.lr_schedule algorithm.discount
    algorithm.gae_lambda algorithm.update_epochs algorithm.minibatch_size
    algorithm.clip_ratio algorithm.entropy_coef algorithm.kl_target
    algorithm.update_every network.policy_layers network.value_layers
    network.init_std""".split()


# Almost all settings, with values that differ from the default.
_CHANGES = {
  "env.id": "Ant-v5",
  "env.kwargs": {"a": 1, "b": [1.5, None], "c": {}},
  "env.max_length": 7,
  "env.action_repeat": 2,
  "env.random_start": 3,
  "env.frame_delta": True,
  "env.wrappers": [{"A": {"b": [1, 2]}}, {"module:C": {}}],
  "env.backend": "envpool",
  "algorithm.type": "module:D",
  "algorithm.kwargs": {"d": 1},
  "algorithm.segment_length": None,
  "algorithm.update_every": 9,
  "algorithm.update_epochs": 3,
  "algorithm.minibatch_size": None,
  "algorithm.adam_epsilon": 1e-7,
  "algorithm.learning_rate": 1e-5,
  "algorithm.lr_schedule": "constant",
  "algorithm.kl_target": 0.02,
  "algorithm.discount": 0.5,
  "algorithm.gae_lambda": 0.25,
  "algorithm.recompute_advantages": False,
  "algorithm.bootstrap_truncation": False,
  "algorithm.clip_ratio": None,
  "algorithm.kl_penalty": 0.25,
  "algorithm.kl_penalty_factor": 3.0,
  "algorithm.kl_cutoff_factor": 4.0,
  "algorithm.kl_cutoff_coef": 125.0,
  "algorithm.value_coef": 0.75,
  "algorithm.value_clip": 0.375,
  "algorithm.entropy_coef": 1e-3,
  "algorithm.max_grad_norm": None,
  "algorithm.normalize_advantage": False,
  "algorithm.normalize_observ": False,
  "algorithm.observ_clip": 4.5,
  "algorithm.reward_scale": "none",
  "algorithm.reward_clip": 6.5,
  "algorithm.action_noise": "pink",
  "network.hidden": "module:E",
  "network.hidden_kwargs": {"e": [2]},
  "network.policy_layers": [3, 4, 5],
  "network.value_layers": [],
  "network.activation": "elu",
  "network.conv": "impala",
  "network.action_distribution": "beta",
  "network.mean_activation": "tanh",
  "network.state_dependent_std": True,
  "network.initializer": "glorot",
  "network.init_output_factor": 0.5,
  "network.init_std": 0.125,
  "network.policy_observ": ["a", "b/c"],
  "network.value_observ": ["d"],
  "network.action_mask": "e",
  "network.recurrent_units": 7,
  "network.share_core": False,
  "steps": 12,
  "extended_from": [6],
  "forked_from": ["run@7"],
  "seed": 13,
  "num_envs": 8,
  "num_workers": 2,
  "env_processes": False,
  "on_env_error": "raise",
  "env_timeout": 7.5,
  "max_env_restarts": 6,
  "stagger": False,
  "device": "cpu",
  "eager": True,
  "report_every": 3,
  "eval_every": 4,
  "eval_episodes": 5,
  "checkpoint_every": 6,
  "histograms": False,
  "video_every": 5,
  "trace_graph": True,
  "logger": "module:F",
}


def _look_up(data, key):
  for part in key.split("."):
    data = data[part]
  return data


def _leaves(data, prefix=""):
  """Yields dotted key and value of every setting without subsettings."""
  for key, value in data.items():
    if isinstance(value, dict) and value:
      yield from _leaves(value, f"{prefix}{key}.")
    else:
      yield prefix + key, value


@pytest.fixture
def config():
  """Returns a config in which almost all settings differ from the default."""
  return config_lib.Config().override(copy.deepcopy(_CHANGES))


@pytest.mark.parametrize("key", _KEYS)
def test_public_keys_exist(key):
  _look_up(config_parsing.to_data(config_lib.Config()), key)


def test_fixture_differs_from_the_default_in_all_but_five_settings(config):
  default = config_parsing.to_data(config_lib.Config())
  same = [
    key for key, value in _leaves(default) if _look_up(config_parsing.to_data(config), key) == value
  ]
  # These settings need segments, PPO or normalized observations, which the
  # fixture does not have.
  assert same == [
    "algorithm.symmetry",
    "algorithm.observ_moments",
    "network.frame_stack",
    "network.recurrent",
    "data_parallel",
  ]


@pytest.mark.parametrize("changes", [{"network.frame_stack": 4}, {"network.recurrent": "lstm"}])
def test_frame_stacks_and_recurrent_networks_round_trip(changes):
  config = config_lib.Config().override(changes)
  assert config != config_lib.Config()
  assert config_lib.from_data(config_parsing.to_data(config)) == config


_EPISODES = {"algorithm.segment_length": None, "algorithm.update_every": 64}


def test_frame_stacks_need_segments():
  with pytest.raises(config_lib.ConfigError, match="segment_length"):
    config_lib.Config().override({"network.frame_stack": 4, **_EPISODES})


def test_recurrent_policies_take_gradient_steps_on_all_episodes():
  changes = {"network.recurrent": "gru", **_EPISODES}
  with pytest.raises(config_lib.ConfigError, match="minibatch_size to null. Received: 64"):
    config_lib.Config().override(changes)
  config_lib.Config().override({**changes, "algorithm.minibatch_size": None})


def test_minibatches_of_recurrent_policies_consist_of_whole_segments():
  with pytest.raises(config_lib.ConfigError, match="multiple of segment_len"):
    config_lib.Config().override({"network.recurrent": "gru", "algorithm.minibatch_size": 16})


# Conversion to data or text, and back.


def test_configs_round_trip_through_data_and_yaml(config):
  for original in (config, config_lib.Config()):
    data = config_parsing.to_data(original)
    assert config_lib.from_data(data) == original
    text = config_lib.dump(original)
    assert config_lib.load(text, "here") == original
    assert config_lib.dump(config_lib.load(text, "here")) == text
    # The text has only standard YAML types, so that any program can read it.
    assert yaml.safe_load(text) == data
    assert "!" not in text


def test_data_contains_all_fields_as_plain_copies(config):
  data = config_parsing.to_data(config)

  def check_fields(dataclass, section):
    assert list(section) == [field.name for field in dataclasses.fields(dataclass)]

  check_fields(config_lib.Config, data)
  check_fields(config_lib.Env, data["env"])
  check_fields(config_lib.Algorithm, data["algorithm"])
  check_fields(config_lib.Network, data["network"])
  assert data["network"]["policy_layers"] == [3, 4, 5]
  assert isinstance(data["network"]["policy_layers"], list)
  data["env"]["kwargs"]["a"] = 2
  assert config.env.kwargs["a"] == 1


def test_missing_fields_get_default_values():
  config = config_lib.from_data({"env": {"id": "Ant-v5"}})
  assert config == config_lib.Config(env=config_lib.Env("Ant-v5"))


def test_configs_are_frozen(config):
  for part in (config, config.env, config.algorithm, config.network):
    field = dataclasses.fields(part)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
      setattr(part, field, None)


@pytest.mark.parametrize(
  "value",
  [
    len,
    object(),
    np.float64(1.5),
    np.arange(3),
    {1, 2},
    b"bytes",
    1j,
    {(1, 2): 3},
    threading.Lock(),
  ],
  ids=lambda value: type(value).__name__,
)
def test_values_that_are_not_plain_data_are_rejected(value):
  config = config_lib.Config(env=config_lib.Env("Ant-v5", {"value": value}))
  with pytest.raises(config_lib.ConfigError, match="plain data"):
    config_lib.dump(config)


def test_loading_executes_no_code(tmp_path):
  path = tmp_path / "proof"
  text = f"env: !!python/object/apply:os.mkdir ['{path}']"
  with pytest.raises(config_lib.ConfigError, match="run/config.yaml"):
    config_lib.load(text, "run/config.yaml")
  assert not path.exists()


@pytest.mark.parametrize(
  "text",
  [
    "",
    "[]",
    "steps",
    "env: [",
    "env: 3",
    "steps: 1\n steps: 2",
    "3: 4",
    "!!int ''",
    "!!bool x",
    "!!timestamp x",
    "a: &a 3\nsteps: *a",
    "[" * 1000,
    "env: {id: x, kwargs: {day: 2020-01-01}}",
  ],
)
def test_loading_errors_name_the_file(text):
  with pytest.raises(config_lib.ConfigError, match="^run/config.yaml: "):
    config_lib.load(text, "run/config.yaml")


# Overrides.


def test_override_changes_only_the_named_settings(config):
  changed = config.override(
    {
      "steps": 100,
      "env.id": "Hopper-v5",
      "env.kwargs.a": 5,
      "env.kwargs.new": [1],
      "algorithm.discount": 0.75,
    }
  )
  before, after = (dict(_leaves(config_parsing.to_data(x))) for x in (config, changed))
  assert config.steps == 12 and "new" not in config.env.kwargs
  assert {
    key: value for key, value in after.items() if key not in before or before[key] != value
  } == {
    "steps": 100,
    "env.id": "Hopper-v5",
    "env.kwargs.a": 5,
    "env.kwargs.new": [1],
    "algorithm.discount": 0.75,
  }
  assert config.override({}) == config


def test_settings_that_depend_on_each_other_change_together():
  # Each change alone contradicts the default of the other setting.
  config = config_lib.Config().override({"num_envs": 3, "algorithm.minibatch_size": 96})
  assert (config.num_envs, config.algorithm.minibatch_size) == (3, 96)


@pytest.mark.parametrize(
  "key, message",
  [
    ("stepps", "Config has no field 'stepps'. Did you mean 'steps'?"),
    ("enf.id", "enf: Config has no field 'enf'. Did you mean 'env'?"),
    (
      "algorithm.learning_rat",
      "algorithm.learning_rat: Algorithm has no "
      "field 'learning_rat'. Did you mean 'algorithm.learning_rate'?",
    ),
    ("algorithm.num_envs", "Algorithm has no field 'num_envs'. Did you mean 'num_envs'?"),
    ("env.max_lenght", "Env has no field 'max_lenght'. Did you mean 'env.max_length'?"),
    (
      "network.x",
      "Network has no field 'x'. Known fields: hidden, "
      "hidden_kwargs, policy_layers, value_layers, activation, conv, "
      "action_distribution, mean_activation, state_dependent_std, initializer, "
      "init_output_factor, init_std, policy_observ, value_observ, action_mask, "
      "frame_stack, recurrent, recurrent_units, share_core.",
    ),
    ("algorithm.normalize_return", "Algorithm has no field"),
    ("", "Config has no field ''"),
    ("steps.", "no fields"),
    ("steps.much", "no fields"),
    ("env.max_length.much", "no fields"),
    ("network.policy_layers.0", "no fields"),
  ],
)
def test_unknown_keys_are_errors_with_suggestions(key, message):
  with pytest.raises(config_lib.ConfigError) as caught:
    config_lib.Config().override({key: 1})
  assert message in str(caught.value)


def test_unknown_keys_in_data_are_errors_with_suggestions():
  with pytest.raises(
    config_lib.ConfigError, match="algorithm.discont: .*Did you mean 'algorithm.discount'?"
  ):
    config_lib.from_data({"algorithm": {"discont": 0.9}})


# Settings of earlier versions.


@pytest.mark.parametrize("value, num_notes", [(False, 0), (True, 1)])
def test_double_buffering_has_no_effect_and_causes_a_note_if_enabled(value, num_notes, capsys):
  config_lib._print_note.cache_clear()
  old = {"double_buffering": value}
  default = config_lib.Config()
  text = config_lib.dump(default) + f"double_buffering: {str(value).lower()}\n"
  assert config_lib.load(text, "config.yaml") == default
  assert default.override({**old, "seed": 3}) == config_lib.Config(seed=3)
  assert config_lib.without_removed({**old, "seed": 3}) == {"seed": 3}
  printed = capsys.readouterr()
  assert printed.err.count("Note: double_buffering was removed.") == num_notes
  assert printed.err.count("\n") == num_notes and not printed.out
  assert "double_buffering" not in config_lib.dump(default)


# Types.


@pytest.mark.parametrize(
  "key, value, expected",
  [
    ("steps", 1e6, 1_000_000),
    ("steps", "1e6", 1_000_000),
    ("steps", "300", 300),
    ("seed", 3.0, 3),
    ("num_workers", None, None),
    ("num_workers", "2", 2),
    ("env.max_length", 5.0, 5),
    ("algorithm.learning_rate", "3e-4", 3e-4),
    ("algorithm.learning_rate", 1, 1.0),
    ("algorithm.discount", 1, 1.0),
    ("network.policy_layers", [64.0, "32"], (64, 32)),
    ("network.policy_layers", (5,), (5,)),
    ("network.value_layers", [], ()),
    ("env.kwargs", {"x": "3"}, {"x": "3"}),
    ("eager", True, True),
  ],
)
def test_values_are_converted_if_no_information_is_lost(key, value, expected):
  config = config_lib.Config().override({key: value})
  converted = config
  for part in key.split("."):
    converted = getattr(converted, part)
  assert converted == expected and type(converted) is type(expected)


@pytest.mark.parametrize(
  "key, value, type_name",
  [
    ("steps", "many", "int"),
    ("steps", 1.5, "int"),
    ("steps", True, "int"),
    ("steps", None, "int"),
    ("steps", [1], "int"),
    ("steps", math.inf, "int"),
    ("steps", math.nan, "int"),
    ("num_workers", "two", "int"),
    ("num_workers", 1.5, "int"),
    ("env.max_length", False, "int"),
    ("algorithm.discount", "high", "float"),
    ("algorithm.discount", True, "float"),
    ("algorithm.discount", None, "float"),
    ("algorithm.lr_schedule", 3, "str"),
    ("env.id", None, "str"),
    ("algorithm.update_every", "all", "int"),
    ("algorithm.update_every", 30.5, "int"),
    ("algorithm.minibatch_size", "all", "int"),
    ("algorithm.reward_clip", "none", "float"),
    ("algorithm.reward_scale", None, "str"),
    ("algorithm.bootstrap_truncation", 1, "bool"),
    ("network.activation", None, "str"),
    ("eager", 1, "bool"),
    ("eager", "yes", "bool"),
    ("env.kwargs", [1], "dict"),
    ("env.kwargs", None, "dict"),
    ("network.policy_layers", [64, "many"], "int"),
    ("network.policy_layers", [64, None], "int"),
  ],
)
def test_wrong_types_are_errors(key, value, type_name):
  with pytest.raises(config_lib.ConfigError) as caught:
    config_lib.Config().override({key: value})
  assert f"`{key}` must be of type {type_name}." in str(caught.value)


@pytest.mark.parametrize(
  "key, value, example",
  [
    ("env.wrappers", "FlattenObservation", "[FlattenObservation, FlattenObservation]"),
    ("network.policy_layers", 64, "[64, 64]"),
    ("network.policy_layers", "64", "[64, 64]"),
  ],
)
def test_single_value_for_a_list_is_an_error_with_an_example(key, value, example):
  with pytest.raises(config_lib.ConfigError) as caught:
    config_lib.Config().override({key: value})
  assert f"`{key}` must be a list, such as {example}." in str(caught.value)


@pytest.mark.parametrize("key", ["env", "algorithm", "network"])
@pytest.mark.parametrize("value", [3, None, "Ant-v5", [1]])
def test_sections_must_be_dicts_of_fields(key, value):
  with pytest.raises(config_lib.ConfigError, match=f"{key}: expected a dict"):
    config_lib.Config().override({key: value})


# Values.


@pytest.mark.parametrize(
  "key, value, rule",
  [
    ("steps", 0, "at least 1"),
    ("steps", -5, "at least 1"),
    ("seed", -1, "at least 0"),
    ("num_envs", 0, "at least 1"),
    ("num_workers", 0, "at least 1"),
    ("report_every", 0, "at least 1"),
    ("eval_every", 0, "at least 1"),
    ("eval_episodes", 0, "at least 1"),
    ("checkpoint_every", -1, "at least 1"),
    ("env.max_length", 0, "at least 1"),
    ("env.action_repeat", 0, "at least 1"),
    ("env.random_start", -1, "at least 0"),
    ("env.wrappers", [{}], "each consist of one name and its arguments"),
    ("env.wrappers", [{"A": {}, "B": {}}], "each consist of one name and its"),
    ("env.backend", "brax", "one of gymnasium, vector, envpool, or name a class"),
    ("env.backend", "envpol", "'envpol'. Did you mean 'envpool'?"),
    ("algorithm.type", "a2c", "`algorithm.type` must be one of ppo, or name"),
    ("algorithm.type", "a2c:", "as `module:Class`. Received: 'a2c:'."),
    ("algorithm.kwargs", {"a": 1}, "`algorithm.kwargs` needs a class of"),
    ("network.hidden", ":Layers", "`network.hidden` must be one of dense, or"),
    ("network.hidden_kwargs", {"a": 1}, "needs a class of your own"),
    ("algorithm.segment_length", 0, "at least 1"),
    ("algorithm.update_epochs", 0, "at least 1"),
    ("algorithm.minibatch_size", 0, "at least 1"),
    ("algorithm.learning_rate", 0, "positive"),
    ("algorithm.learning_rate", -1e-3, "positive"),
    ("algorithm.learning_rate", math.inf, "positive"),
    ("algorithm.learning_rate", math.nan, "positive"),
    ("algorithm.lr_schedule", "cosine", "one of constant, linear, kl_adaptive, kl_adaptive_linear"),
    ("algorithm.kl_target", 0, "positive"),
    ("algorithm.discount", 0, "(0, 1]"),
    ("algorithm.discount", 1.2, "(0, 1]"),
    ("algorithm.discount", math.nan, "(0, 1]"),
    ("algorithm.gae_lambda", -0.1, "[0, 1]"),
    ("algorithm.gae_lambda", 1.1, "[0, 1]"),
    ("algorithm.clip_ratio", 0, "positive or null"),
    ("algorithm.clip_ratio", math.inf, "positive or null"),
    ("algorithm.update_every", 0, "at least 1"),
    ("algorithm.adam_epsilon", 0, "positive"),
    ("algorithm.kl_penalty", -1, "at least 0"),
    ("algorithm.kl_penalty", math.inf, "at least 0"),
    ("algorithm.kl_penalty_factor", 0.9, "at least 1"),
    ("algorithm.kl_penalty_factor", math.inf, "at least 1"),
    ("algorithm.kl_cutoff_factor", 0, "positive"),
    ("algorithm.kl_cutoff_coef", -1, "at least 0"),
    ("algorithm.kl_cutoff_coef", math.nan, "at least 0"),
    ("algorithm.value_clip", 0, "positive or null"),
    ("algorithm.reward_clip", -1, "positive or null"),
    ("algorithm.reward_scale", "std", "one of return, reward, none"),
    ("network.activation", "sigmoid", "one of tanh, relu, elu"),
    ("network.conv", "resnet", "one of nature, impala"),
    ("network.action_distribution", "normal", "one of gaussian, squashed_gaussian, beta"),
    ("network.mean_activation", "relu", "one of linear, tanh"),
    ("network.initializer", "zeros", "one of orthogonal, glorot"),
    ("network.init_output_factor", 0, "positive"),
    ("network.init_output_factor", math.nan, "positive"),
    ("algorithm.value_coef", -1, "at least 0"),
    ("algorithm.entropy_coef", -1e-9, "at least 0"),
    ("algorithm.entropy_coef", math.nan, "at least 0"),
    ("algorithm.max_grad_norm", 0, "positive or null"),
    ("algorithm.observ_clip", 0, "positive"),
    ("network.policy_layers", [64, 0], "positive"),
    ("network.value_layers", [-1], "positive"),
    ("network.init_std", 0, "positive"),
    ("network.policy_observ", [], "name at least one part"),
    ("network.value_observ", [], "name at least one part"),
    ("network.frame_stack", 0, "at least 1"),
    ("network.recurrent", "rnn", "one of gru, lstm"),
    ("network.recurrent_units", 0, "at least 1"),
  ],
)
def test_invalid_values_are_errors(key, value, rule):
  with pytest.raises(config_lib.ConfigError) as caught:
    config_lib.Config().override({key: value})
  text = str(caught.value)
  assert rule in text and key.split(".")[-1] in text
  assert "Received: " in text


@pytest.mark.parametrize(
  "key, value",
  [
    ("algorithm.discount", 1),
    ("algorithm.gae_lambda", 0),
    ("algorithm.gae_lambda", 1),
    ("algorithm.value_coef", 0),
    ("seed", 0),
    ("steps", 1),
    ("env.max_length", 1),
    ("algorithm.minibatch_size", 1),
    ("algorithm.minibatch_size", None),
    ("algorithm.segment_length", 1),
    ("algorithm.max_grad_norm", None),
    ("algorithm.clip_ratio", None),
    ("algorithm.value_clip", None),
    ("algorithm.reward_clip", None),
    ("algorithm.kl_penalty", 0),
    ("algorithm.kl_cutoff_coef", 0),
    ("algorithm.kl_penalty_factor", 1),
    ("algorithm.reward_scale", "return"),
    ("algorithm.reward_scale", "reward"),
    ("network.activation", "relu"),
  ],
)
def test_bounds_of_valid_ranges_are_allowed(key, value):
  config_lib.Config().override({key: value})


def test_minibatch_size_must_divide_the_batch():
  with pytest.raises(config_lib.ConfigError, match=r"divide.* 64 \* 32 = 2048.*Received: 100"):
    config_lib.Config().override({"algorithm.minibatch_size": 100})
  with pytest.raises(config_lib.ConfigError, match="divide"):
    config_lib.Config().override({"algorithm.minibatch_size": 4096})
  # Without a minibatch size, a minibatch is the complete batch.
  config_lib.Config().override({"num_envs": 7, "algorithm.minibatch_size": None})


@pytest.mark.parametrize("length, num_episodes", [(None, None), (32, 64)])
def test_updates_learn_from_either_segments_or_episodes(length, num_episodes):
  with pytest.raises(
    config_lib.ConfigError,
    match=f"(?s)one of `segment_length` and `update_every` must be null.*"
    f"Received: {length} and {num_episodes}",
  ):
    config_lib.Config().override(
      {"algorithm.segment_length": length, "algorithm.update_every": num_episodes}
    )


def test_whole_episodes_allow_any_minibatch_size():
  config = config_lib.Config().override(
    {
      "algorithm.segment_length": None,
      "algorithm.update_every": 64,
      "algorithm.minibatch_size": 100,
    }
  )
  assert config.algorithm.minibatch_size == 100
  assert config_lib.load(config_lib.dump(config), "here") == config


def test_updates_need_at_least_one_episode_of_each_environment():
  changes = {"algorithm.segment_length": None, "num_envs": 31}
  with pytest.raises(
    config_lib.ConfigError,
    match="`algorithm.update_every` must be at least num_envs = 31.*Received: 30",
  ):
    config_lib.Config().override({**changes, "algorithm.update_every": 30})
  config = config_lib.Config().override({**changes, "algorithm.update_every": 31})
  assert config.algorithm.update_every == 31
  assert config.override({"algorithm.update_every": 32}) != config


def test_default_intervals_depend_on_the_budget():
  config = config_lib.Config(steps=2000)
  assert config.every("report_every") == 20
  assert config.every("eval_every") == 100
  assert config.every("checkpoint_every") == 100
  config = config.override({"eval_every": 7, "steps": 5})
  assert config.every("eval_every") == 7
  assert config.every("report_every") == 1


# The command line.


@pytest.mark.parametrize(
  "text, expected",
  [
    ("num_envs=32", ("num_envs", 32)),
    ("env.id=Ant-v5", ("env.id", "Ant-v5")),
    ("env.id=module:Class", ("env.id", "module:Class")),
    ("env.max_length=null", ("env.max_length", None)),
    ("eager=true", ("eager", True)),
    ("algorithm.segment_length=null", ("algorithm.segment_length", None)),
    ("network.policy_layers=[32, 16]", ("network.policy_layers", [32, 16])),
    ("env.kwargs={a: 1, b: x=y}", ("env.kwargs", {"a": 1, "b": "x=y"})),
  ],
)
def test_settings_are_split_into_key_and_value(text, expected):
  assert config_lib.parse_setting(text) == expected


@pytest.mark.parametrize(
  "value",
  [1e-5, 32, 1e22, True, None, "tanh", "1e-5", "a: b", "", [64, 64], {"a": [1.5, "x"], "b": {}}],
)
def test_written_settings_are_parsed_to_the_same_value(value):
  written = config_lib.setting("env.kwargs", value)
  assert config_lib.parse_setting(written) == ("env.kwargs", value)


@pytest.mark.parametrize(
  "text",
  [
    "algorithm.learning_rate=3e-4",
    "algorithm.learning_rate=3.0e-4",
    "algorithm.learning_rate=0.0003",
  ],
)
def test_learning_rate_can_be_written_in_any_notation(text):
  config = config_lib.Config().override(dict([config_lib.parse_setting(text)]))
  assert config.algorithm.learning_rate == 3e-4


@pytest.mark.parametrize(
  "text", ["num_envs", "=3", "", "num_envs 3", "env.kwargs={", "env.kwargs=!!x 3"]
)
def test_invalid_settings_are_errors(text):
  with pytest.raises(config_lib.ConfigError) as caught:
    config_lib.parse_setting(text)
  assert str(caught.value).startswith(f"--set {text}: ")
