"""Batched columns equal Gymnasium's infos for every split of the batch."""

import numpy as np
import pytest
from gymnasium import vector

from agents.environments.data import infos

_INFOS = {
  "numbers": [{"a": 1.5, "b": 2}, {"a": 2.5, "b": 3}, {"a": 0.5, "b": 4}],
  "in one environment": [{}, {"a": 1.0}, {}],
  "different keys": [{"a": 1}, {"b": True}, {"a": 2, "c": np.float32(3)}],
  "flags": [{"a": True}, {"a": False}, {"a": np.bool_(True)}],
  "first value is an integer": [{"a": 1}, {"a": 2.5}, {"a": np.int8(3)}],
  "first value is a float": [{"a": 1.5}, {"a": 2}, {"a": None}],
  "text": [{"a": "x"}, {"a": 1}, {"b": "y"}],
  "arrays": [{"a": np.ones(2)}, {}, {"a": np.zeros(2)}],
  "nested": [{"a": {"b": 1, "c": {"d": 2.0}}}, {"a": {"b": 3}}, {}],
  "final observation and info": [
    {"final_obs": 3, "final_info": {"a": 1.0}},
    {"b": 2},
    {"final_obs": np.int64(4), "final_info": {"a": 2.0}},
  ],
  "none": [{}, {}, {}],
}


@pytest.mark.parametrize("bounds", [[0, 3], [0, 1, 3], [0, 2, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("name", _INFOS)
def test_batched_infos_equal_gymnasium(name, bounds):
  envs = vector.VectorEnv()
  envs.num_envs = 3
  expected = {}
  for index, info in enumerate(_INFOS[name]):
    expected = envs._add_info(expected, info, index)
  parts = [
    infos.gather({index: _INFOS[name][index] for index in range(start, stop)})
    for start, stop in zip(bounds[:-1], bounds[1:])
  ]
  result = infos.batch(parts, 3, envs._add_info)
  np.testing.assert_equal(result, expected)
  _assert_same_types(result, expected)


def _assert_same_types(one, other):
  for key, value in one.items():
    assert type(value) is type(other[key])
    if isinstance(value, dict):
      _assert_same_types(value, other[key])
    else:
      assert value.dtype == other[key].dtype, key
      assert list(map(type, value)) == list(map(type, other[key])), key
