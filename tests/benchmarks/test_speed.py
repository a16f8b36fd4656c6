import json

import pytest

from agents import config as config_lib
from benchmarks import speed
from benchmarks.common import machine

CONFIG = config_lib.Config().override({
    "env.id": "tests.toy:Counter", "env.kwargs": {"length": 3}, "num_envs": 4})


def test_simulator_makes_at_least_one_step():
  assert speed.measure_simulator(CONFIG, 0.0).steps_per_second > 0


@pytest.mark.slow
@pytest.mark.parametrize("args", [(), ("--simulator",)])
def test_command_prints_one_line_of_json(args):
  output = machine.python(
      "-m", "benchmarks.speed", "--config", "pendulum", "--seconds", "0.1",
      "--set", "num_envs=4", "--set", "algorithm.segment_length=16", *args)
  measured = speed.Speed(**json.loads(output.splitlines()[-1]))
  assert measured.steps_per_second > 0
  assert measured.memory is None or measured.memory > 0
