"""Numbers in infos are converted to Python types; reward parts are summed."""

import enum

import numpy as np

from agents.environments.data import episode_data


def test_numbers_are_python_types():
  class Kind(enum.IntEnum):
    ONE = 1

  class CustomFloat(float):
    pass

  numbers = episode_data.numbers(
    {
      "bool": True,
      "numpy_bool": np.bool_(False),
      "int": 3,
      "kind": Kind.ONE,
      "numpy_int": np.int64(4),
      "float": 0.5,
      "custom_float": CustomFloat(2.5),
      "numpy_float": np.float32(1.5),
      "array": np.zeros(1),
      "text": "text",
      "none": None,
      "complex": 1j,
    }
  )
  assert numbers == {
    "bool": True,
    "numpy_bool": False,
    "int": 3,
    "kind": 1,
    "numpy_int": 4,
    "float": 0.5,
    "custom_float": 2.5,
    "numpy_float": 1.5,
  }
  assert {type(value) for value in numbers.values()} == {bool, int, float}


def test_info_keys_may_have_any_type():
  parts = {}
  episode_data.add_reward_parts(parts, {7: 1.0, ("reward_", 1): 2.0, None: 3, "reward_run": 0.5})
  assert parts == {"reward_run": 0.5}
