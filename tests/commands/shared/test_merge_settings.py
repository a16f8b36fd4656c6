"""Settings of a run state the source of each value."""

import pytest

from agents import config as config_lib
from agents import configs
from agents.commands.shared import merge_settings


def _origins(*args):
  return merge_settings.of_new_run(*args).origins


def test_origin_of_each_value_is_the_last_layer_that_set_it():
  settings = merge_settings.of_new_run(
    "ant",
    ["paper"],
    {"seed": "3", "algorithm.learning_rate": "1e-4", "env.kwargs.a": 1, "num_workers": None},
  )
  config, origins = settings.config, settings.origins
  assert settings.name == "ant-paper"
  assert config.seed == 3 and config.env.kwargs == {"a": 1}
  for key, origin in {
    "env.id": "config ant",
    "stagger": "default",
    "algorithm.update_every": "preset paper",
    "device": "default",
    "network.policy_layers": "preset paper",
    "seed": "command line",
    "algorithm.learning_rate": "command line",
    "env.kwargs.a": "command line",
    "num_workers": "command line",  # The value equals the default.
  }.items():
    assert origins[key] == origin, key
  assert origins.keys() == config_lib.flat(config).keys()


def test_without_changes_all_origins_are_defaults_or_the_config():
  origins = _origins("walker", [], {})
  assert {key for key, origin in origins.items() if origin != "default"} == {
    "env.id",
    "algorithm.lr_schedule",
    "algorithm.gae_lambda",
  }


def test_origins_of_an_existing_run_are_its_config_or_the_command_line():
  _, config = configs.load("ant")
  settings = merge_settings.of_old_run("x", config, {"steps": "2e6"})
  assert settings.config.steps == 2_000_000
  assert settings.config.extended_from == (1_000_000,)
  assert settings.origins["steps"] == "command line"
  assert set(settings.origins.values()) == {"command line", "config.yaml"}


def test_budget_of_an_existing_run_can_only_grow():
  _, config = configs.load("ant")
  with pytest.raises(config_lib.ConfigError, match="1e5.*can only grow"):
    merge_settings.of_old_run("x", config, {"steps": "1e5"})
  unchanged = merge_settings.of_old_run("x", config, {"steps": "1e6"}).config
  assert unchanged.extended_from == ()


def test_description_has_a_line_per_value():
  settings = merge_settings.of_new_run("cheetah", [], {"seed": 5})
  lines = settings.describe().splitlines()
  assert len(lines) == len(config_lib.flat(settings.config))
  assert [line.split() for line in lines if line.startswith(("env.id", "seed"))] == [
    ["env.id:", "HalfCheetah-v5", "#", "config", "cheetah"],
    ["seed:", "5", "#", "command", "line"],
  ]
  assert len({line.index("#") for line in lines}) == 1


@pytest.mark.parametrize(
  "args", [("nothing", [], {}), ("ant", ["nothing"], {}), ("ant", [], {"seeds": 1})]
)
def test_unknown_names_are_config_errors(args):
  with pytest.raises(config_lib.ConfigError):
    merge_settings.of_new_run(*args)


def test_name_of_a_run_without_a_task_in_its_config_contains_the_task():
  changes = {"env.id": "tests.toy:Target"}
  assert merge_settings.of_new_run("default", ["paper"], {**changes, "env.max_length": 9}).name == (
    "default-tests.toy_Target-paper"
  )
  assert merge_settings.of_new_run("ant", [], changes).name == "ant"


def test_presets_apply_in_order():
  settings = merge_settings.of_new_run("pendulum", ["paper", "recurrent"], {})
  assert settings.name == "pendulum-paper-recurrent"
  assert settings.origins["algorithm.kl_penalty"] == "preset paper"
  assert settings.origins["network.recurrent"] == "preset recurrent"
  assert settings.config.algorithm.update_every and settings.config.network.recurrent
