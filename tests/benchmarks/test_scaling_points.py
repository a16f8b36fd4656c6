import pytest
from agents.configs import presets

from agents import config as config_lib
from agents import configs
from benchmarks import scaling_points

CONFIG = config_lib.Config()  # 64 environments of 32 steps, minibatches of 64.


def changed(config, point):
  """Return the config that a point's command line trains."""
  return config.override(
      dict(config_lib.parse_setting(text) for text in point.settings))


def test_point_omits_changes_that_equal_the_config():
  same = {"num_envs": 64, "num_workers": 4, "algorithm.minibatch_size": 64,
          "network.policy_layers": [64, 64]}
  assert scaling_points.point(CONFIG, 4, same, threads=4) == (
      scaling_points.Point())


def test_changes_become_command_line_arguments():
  point = scaling_points.point(CONFIG, 4, {
      "num_workers": 2, "network.policy_layers": [32, 32]}, threads=1)
  assert point.args == [
      "--set", "num_workers=2", "--set", "network.policy_layers=[32,32]"]
  assert point.variables == {"TF_NUM_INTRAOP_THREADS": "1"}
  assert changed(CONFIG, point).network.policy_layers == (32, 32)


def test_simulator_point_has_its_argument():
  assert scaling_points.Point(simulator=True).args == ["--simulator"]
  assert scaling_points.Point().variables == {}


@pytest.mark.parametrize("num_envs, length", [
    (1, 2048), (2, 1024), (64, 32), (256, 8), (512, 8)])
def test_update_learns_from_the_same_number_of_steps(num_envs, length):
  assert scaling_points.with_envs(CONFIG, num_envs) == {
      "num_envs": num_envs, "algorithm.segment_length": length}


@pytest.mark.parametrize("num_envs", [1, 3, 7, 100, 512])
@pytest.mark.parametrize("minibatch", [64, 96, None])
def test_segments_divide_into_minibatches(num_envs, minibatch):
  config = CONFIG.override({
      "num_envs": 6, "algorithm.segment_length": 32,
      "algorithm.minibatch_size": minibatch})
  changes = scaling_points.with_envs(config, num_envs)
  config.override(changes)  # Raises an error if they do not divide.
  assert changes["algorithm.segment_length"] >= 8


def test_number_of_whole_episodes_grows_only_if_necessary():
  config = presets.apply("paper", CONFIG)
  assert scaling_points.with_envs(config, 10) == {
      "num_envs": 10, "algorithm.update_every": 30}
  assert scaling_points.with_envs(config, 40) == {
      "num_envs": 40, "algorithm.update_every": 40}


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("cores", [1, 6])
@pytest.mark.parametrize("name", configs.names())
def test_every_point_of_every_config_is_valid(name, cores, quick):
  _, config = configs.load(name)
  sweeps = scaling_points.sweeps(config, cores, quick)
  assert list(sweeps) == ["envs", "workers", "width", "minibatch"]
  for points in sweeps.values():
    assert list(points) == sorted(points)
    for point in points.values():
      changed(config, point)
  own = scaling_points.Point()
  assert sweeps["envs"][config.num_envs] == own
  assert sweeps["workers"][config.workers(cores)] == own
  if config.algorithm.segment_length:
    minibatch = (config.algorithm.minibatch_size
                 or scaling_points.steps_per_update(config))
    assert sweeps["minibatch"][minibatch] == own


def test_default_config_has_these_axes():
  sweeps = scaling_points.sweeps(CONFIG, 2)
  assert list(sweeps["envs"]) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
  assert list(sweeps["workers"]) == [1, 2, 3, 4]
  assert list(sweeps["width"]) == [32, 64, 128, 256, 512]
  assert list(sweeps["minibatch"]) == [32, 64, 128, 256, 512, 1024, 2048]
  assert list(scaling_points.sweeps(CONFIG, 6)["workers"]) == [
      1, 2, 4, 6, 7, 8, 12]


def test_quick_sweeps_have_fewer_points_of_the_same_range():
  sweeps = scaling_points.sweeps(CONFIG, 2, quick=True)
  assert list(sweeps["envs"]) == [1, 8, 64, 512]
  assert list(sweeps["workers"]) == [1, 2, 3]
  assert list(sweeps["width"]) == [32, 64, 128, 512]
  assert list(sweeps["minibatch"]) == [32, 64, 128, 512, 2048]


def test_workers_do_not_exceed_environments():
  config = CONFIG.override({"num_envs": 4, "algorithm.segment_length": 512})
  assert list(scaling_points.sweeps(config, 16)["workers"]) == [1, 2, 4]


def test_memory_is_compared_at_equal_steps_and_workers():
  for few, many in (scaling_points.memory(CONFIG, 64)["training"],
                    scaling_points.memory(CONFIG, 2)["training"]):
    few, many = changed(CONFIG, few), changed(CONFIG, many)
    assert (few.num_envs, many.num_envs) == (8, 512)
    assert few.num_workers == many.num_workers
    assert scaling_points.steps_per_update(few) == (
        scaling_points.steps_per_update(many))
  for point in scaling_points.memory(CONFIG, 2)["simulator"]:
    assert point.simulator


def test_combinations_are_few_and_include_the_config():
  assert [(point.settings, point.threads)
          for point in scaling_points.combinations(CONFIG, 2)] == [
      (("num_workers=1",), 1), (("num_workers=1",), None),
      ((), 1), ((), None),
      (("num_workers=4",), 1), (("num_workers=4",), None)]
  assert len(scaling_points.combinations(CONFIG, 1)) == 2
  assert len(scaling_points.combinations(CONFIG, 64)) <= 12
