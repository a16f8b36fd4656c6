"""Arguments of environments differ by index."""

import numpy as np
import pytest

from agents.environments.making import varied_kwargs


def _values(value, seed=0, count=500):
  return [varied_kwargs.resolve({"a": 1, "b": value}, seed, index)["b"] for index in range(count)]


def test_each_gives_the_values_in_turn():
  assert _values({"each": [3, "x"]}, count=5) == [3, "x", 3, "x", 3]


def test_choice_and_uniform_draw_by_seed_and_index():
  chosen = _values({"choice": ["x", "y", "z"]})
  assert {*chosen} == {"x", "y", "z"} and 100 < chosen.count("x") < 230
  numbers = _values({"uniform": [2, 4]})
  assert 2 <= min(numbers) < 2.1 and 3.9 < max(numbers) <= 4 and abs(np.mean(numbers) - 3) < 0.1
  for value in ({"choice": ["x", "y", "z"]}, {"uniform": [2, 4]}):
    assert _values(value) == _values(value) != _values(value, seed=1)


@pytest.mark.parametrize("value", [5, [1, 2], {"x": 1}, {"choice": [1], "x": 2}, {}])
def test_other_values_do_not_change(value):
  assert _values(value, count=2) == [value, value] and not varied_kwargs.varies(value)


@pytest.mark.parametrize(
  "value, message",
  [
    ({"each": []}, "b: `each` needs a list of values"),
    ({"choice": 3}, "b: `choice` needs a list of values"),
    ({"uniform": [1]}, r"needs \[low, high\]"),
    ({"uniform": [2, 1]}, "low <= high"),
    ({"uniform": ["a", 1]}, r"needs \[low, high\]"),
  ],
)
def test_invalid_values_are_errors(value, message):
  with pytest.raises(ValueError, match=message):
    _values(value, count=1)
