"""The memory of EnvPool's environments is measured before it is allocated."""

import pytest

from agents import config as config_lib
from agents.environments.blocks import envpool_block, envpool_memory


def _config(env_id, num_envs):
  return config_lib.Config(config_lib.Env(env_id, backend="envpool"), num_envs=num_envs)


@pytest.mark.slow
def test_robots_that_exceed_the_memory_are_an_error_before_they_are_built():
  pytest.importorskip("envpool")
  with pytest.raises(
    config_lib.ConfigError,
    match=r"40000 environments of BarkourJoystick-v1 need about .* \(measured: [2-9]\d MB each\), "
    "but .* Set num_envs to at most",
  ):
    envpool_block.check(_config("BarkourJoystick-v1", 40_000))


def test_memory_is_stated_if_it_is_more_than_one_gigabyte():
  config = _config("Go1JoystickFlatTerrain-v1", 256)
  assert envpool_memory.compare(config, 60e6, 18e9) == [
    "256 environments of Go1JoystickFlatTerrain-v1 need about 15.4 GB (measured: 60 MB each); "
    "this machine has 18.0 GB available."
  ]
  assert envpool_memory.compare(config, 3e6, 18e9) == []
  assert "need about 15.4 GB" in envpool_memory.compare(config, 60e6, None)[0]
  with pytest.raises(config_lib.ConfigError, match="Set num_envs to at most 133"):
    envpool_memory.compare(config, 60e6, 8e9)


def test_available_memory_is_that_of_the_machine_or_of_its_container():
  assert 1e8 < envpool_memory.available() < 1e14
