import json

import pytest

from benchmarks import speed
from benchmarks.common import machine


@pytest.mark.slow
def test_command_prints_one_line_of_json():
  output = machine.python(
    "-m",
    "benchmarks.speed",
    "--config",
    "pendulum",
    "--seconds",
    "0.1",
    "--set",
    "num_envs=4",
    "--set",
    "eager=true",
    "--set",
    "algorithm.segment_length=16",
  )
  measured = speed.Speed(**json.loads(output.splitlines()[-1]))
  assert measured.steps_per_second > 0
  assert measured.memory is None or measured.memory > 0
