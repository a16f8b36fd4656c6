import pytest
from agents.configs import presets

from agents import config as config_lib
from agents import configs
from benchmarks import scaling_settings

CONFIG = config_lib.Config()  # 64 environments, 32 steps, minibatches of 64.


def changed(config, point):
  """Returns the config that a point's command line trains."""
  return config.override(dict(config_lib.parse_setting(text) for text in point.settings))


def test_point_omits_changes_that_equal_the_config():
  same = {
    "num_envs": 64,
    "num_workers": 4,
    "algorithm.minibatch_size": 64,
    "network.policy_layers": [64, 64],
  }
  assert scaling_settings.point(CONFIG, 4, same, threads=4) == (scaling_settings.Point())


def test_changes_become_command_line_arguments():
  point = scaling_settings.point(
    CONFIG, 4, {"num_workers": 2, "network.policy_layers": [32, 32]}, threads=1
  )
  assert point.args == ["--set", "num_workers=2", "--set", "network.policy_layers=[32,32]"]
  assert point.variables == {"TF_NUM_INTRAOP_THREADS": "1"}
  assert changed(CONFIG, point).network.policy_layers == (32, 32)


@pytest.mark.parametrize("num_envs, length", [(1, 2048), (2, 1024), (64, 32), (256, 8), (512, 8)])
def test_update_learns_from_the_same_number_of_steps(num_envs, length):
  assert scaling_settings.with_envs(CONFIG, num_envs) == {
    "num_envs": num_envs,
    "algorithm.segment_length": length,
  }


@pytest.mark.parametrize("num_envs", [1, 3, 7, 100, 512])
@pytest.mark.parametrize("minibatch", [64, 96, None])
def test_segments_divide_into_minibatches(num_envs, minibatch):
  config = CONFIG.override(
    {"num_envs": 6, "algorithm.segment_length": 32, "algorithm.minibatch_size": minibatch}
  )
  changes = scaling_settings.with_envs(config, num_envs)
  config.override(changes)  # Raises an error if minibatches do not fit.
  assert changes["algorithm.segment_length"] >= 8


def test_number_of_whole_episodes_grows_only_if_necessary():
  config = presets.apply("paper", CONFIG)
  assert scaling_settings.with_envs(config, 10) == {"num_envs": 10, "algorithm.update_every": 30}
  assert scaling_settings.with_envs(config, 40) == {"num_envs": 40, "algorithm.update_every": 40}


@pytest.mark.parametrize("cores", [1, 6])
@pytest.mark.parametrize("name", configs.names())
def test_every_point_of_every_config_is_valid(name, cores):
  _, config = configs.load(name)
  environments = scaling_settings.environments(config, cores)
  assert list(environments) == sorted({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, config.num_envs})
  for number, point in environments.items():
    assert changed(config, point).num_envs == number
  assert environments[config.num_envs] == scaling_settings.Point()
  for point in scaling_settings.combinations(config, cores):
    assert changed(config, point).num_workers in (None, *range(1, config.num_envs + 1))


def test_combinations_are_few_and_include_the_config():
  assert [
    (point.settings, point.threads) for point in scaling_settings.combinations(CONFIG, 2)
  ] == [
    (("num_workers=1",), 1),
    (("num_workers=1",), None),
    ((), 1),
    ((), None),
    (("num_workers=4",), 1),
    (("num_workers=4",), None),
  ]
  assert len(scaling_settings.combinations(CONFIG, 1)) == 2
  assert len(scaling_settings.combinations(CONFIG, 64)) <= 12
