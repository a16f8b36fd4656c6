import pytest

from agents import config as config_lib
from agents import configs
from benchmarks import changed


def test_only_what_is_set_changes():
  _, config = configs.load("cheetah")
  assert changed.load("cheetah", []) == config
  assert changed.load(
      "cheetah", ["num_envs=64", "algorithm.minibatch_size=64"]
  ) == config.override({"num_envs": 64, "algorithm.minibatch_size": 64})


@pytest.mark.parametrize("name, settings", [
    ("cat", []), ("cheetah", ["num_env=3"]), ("cheetah", ["num_envs"])])
def test_what_is_unknown_is_an_error(name, settings):
  with pytest.raises(config_lib.ConfigError):
    changed.load(name, settings)
