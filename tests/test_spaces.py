"""Arrays represent values of every space, in Python and in the graph."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import spaces
from agents.ops import tensor_bytes
from tests.support import modes

gym = gymnasium.spaces
_BOX = gym.Box(-1, 1, (2,), np.float32)
_NESTED = gym.Dict(
  {
    "position": gym.Box(-9, 9, (3,), np.float64),
    "camera": gym.Box(0, 255, (4, 5, 1), np.uint8),
    "rest": gym.Tuple(
      [
        gym.Discrete(5, start=2),
        gym.MultiBinary(4),
        gym.MultiDiscrete([3, 4], start=[0, 7]),
        gym.Box(-999, 999, (), np.int16),
        gym.Box(0, 1, (2, 1), np.bool_),
        gym.Dict({"large": gym.Box(0, 2**62, (1,), np.uint64)}),
      ]
    ),
  }
)


def _write_samples(size=6):
  """Writes samples of `_NESTED` to an array.

  Returns:
    The samples, and the array of shape [size].
  """
  _NESTED.seed(0)
  values = [_NESTED.sample() for _ in range(size)]
  if size:
    # This integer has more digits than a float64 can represent.
    values[0]["rest"][5]["large"][0] = 2**63 - 1
  dtype, shape = spaces.dtype(_NESTED)
  array = np.zeros((size, *shape), dtype)
  write = spaces.writer(_NESTED, array)
  for row, value in enumerate(values):
    write(row, value)
  return values, array


@pytest.mark.parametrize(
  "space, value",
  [
    (gym.Box(0, 255, (2,), np.uint8), np.array([3, 256])),
    (gym.Box(0, 255, (2,), np.uint8), np.array([0.5, 1.0])),
    (gym.Box(0, 255, (2,), np.uint8), [3, -1]),
    (gym.Box(0, 1, (2,), np.bool_), np.array([0, 2])),
    (gym.Discrete(4), 1.5),
    (gym.MultiBinary(2), np.array([1, 400])),
  ],
)
def test_integers_that_do_not_fit_their_type_are_refused(space, value):
  for outer_space, outer_value in ((space, value), (gym.Dict(a=space), {"a": value})):
    dtype, shape = spaces.dtype(outer_space)
    write = spaces.writer(outer_space, np.zeros((1, *shape), dtype))
    with pytest.raises(ValueError, match="can't represent"):
      write(0, outer_value)


def test_exact_integers_of_another_type_are_accepted():
  array = np.zeros((1, 2), np.uint8)
  write = spaces.writer(gym.Box(0, 255, (2,), np.uint8), array)
  for value in np.array([3, 255]), [7, 0], np.array([1.0, 2.0]):
    write(0, value)
    np.testing.assert_array_equal(array[0], value)


def _part(value, leaf):
  for key in leaf.path:
    value = value[key if isinstance(value, dict) else int(key)]
  return value


def test_structured_type_has_a_field_for_each_part():
  values, array = _write_samples()
  for row, value in enumerate(values):
    np.testing.assert_array_equal(array["camera"][row], value["camera"])
    np.testing.assert_array_equal(array["position"][row], value["position"].astype(np.float32))
    assert array["rest"]["0"][row] == value["rest"][0]
    assert array["rest"]["5"]["large"][row] == value["rest"][5]["large"]


def test_leaves_contain_the_byte_offset_of_each_part():
  values, array = _write_samples()
  packed = spaces.as_bytes(array)
  assert packed.shape == (6, array.dtype.itemsize)
  for leaf in spaces.leaves(_NESTED):
    raw = packed[:, leaf.offset : leaf.offset + leaf.num_bytes]
    column = np.ascontiguousarray(raw).view(leaf.dtype).reshape(-1, *leaf.shape)
    for row, value in enumerate(values):
      np.testing.assert_array_equal(column[row], np.asarray(_part(value, leaf)).astype(leaf.dtype))


@modes.eager_and_compiled
def test_graph_unpacks_the_columns_of_the_array(prepare):
  _, array = _write_samples()
  leaves = spaces.leaves(_NESTED)
  parts = prepare(lambda packed: tensor_bytes.unpack(packed, leaves))(
    tf.constant(spaces.as_bytes(array))
  )
  for part, column in zip(parts, spaces.columns(array), strict=True):
    assert part.dtype == tf.as_dtype(column.dtype)
    np.testing.assert_array_equal(part, column)


@modes.eager_and_compiled
def test_pack_inverts_unpack(prepare):
  space = gym.Dict({"a": _BOX, "b": gym.Discrete(3), "c": gym.MultiBinary(2)})
  dtype, _ = spaces.dtype(space, is_action=True)
  array = np.zeros(5, dtype)
  array["a"], array["b"] = np.arange(10).reshape(5, 2), np.arange(5)
  packed = spaces.as_bytes(array)
  leaves = spaces.leaves(space, is_action=True)

  def repack(packed):
    return tensor_bytes.pack(tensor_bytes.unpack(packed, leaves))

  np.testing.assert_array_equal(prepare(repack)(tf.constant(packed)), packed)
  np.testing.assert_array_equal(spaces.from_bytes(packed, dtype), array)


def test_bytes_of_an_empty_array_are_an_empty_array():
  _, array = _write_samples(0)
  assert spaces.as_bytes(array).shape == (0, array.dtype.itemsize)


def test_values_of_simple_spaces_are_plain_arrays():
  array = np.zeros((3, 2), np.float32)
  spaces.writer(_BOX, array)(1, np.array([1.0, 2.0]))
  np.testing.assert_array_equal(array, [[0, 0], [1, 2], [0, 0]])
  assert spaces.as_bytes(array) is array
  assert spaces.columns(array)[0] is array


@pytest.mark.parametrize("function", ["values", "writer"])
def test_errors_name_parts_that_are_missing_or_have_a_wrong_shape(function):
  (value,), array = _write_samples(1)

  def read(value):
    if function == "values":
      return spaces.values(_NESTED, value)
    return spaces.writer(_NESTED, array)(0, value)

  wrong = {**value, "camera": value["camera"][0]}
  with pytest.raises(ValueError, match=r"\['camera'\] has shape \(5, 1\)"):
    read(wrong)
  del wrong["camera"]
  with pytest.raises(ValueError, match=r"no \['camera'\]"):
    read(wrong)
  with pytest.raises(ValueError, match=r"no \['rest'\]\['5'\]"):
    read({**value, "rest": value["rest"][:5]})


@pytest.mark.parametrize(
  "space, value",
  [
    (_BOX, np.zeros(1, np.float32)),
    (_BOX, np.float32(0)),
    (_BOX, np.zeros((1, 2), np.float32)),
    (gym.MultiDiscrete([3, 3]), 1),
    (gym.Discrete(3), np.zeros(1, np.int64)),
  ],
)
def test_values_that_would_broadcast_are_refused(space, value):
  array = np.zeros((3, *space.shape), space.dtype)
  with pytest.raises(ValueError, match="observation has shape .*, but its"):
    spaces.writer(space, array)(1, value)
  assert not array.any()


def test_conversion_that_loses_fractions_is_refused():
  for values, dtype in (
    ([0.5, 1], np.float32),
    (np.array([1.5]), np.float32),
    ([1, 2], np.float32),
    (np.ones(2, np.int32), np.int64),
    ([True], np.int64),
  ):
    array = spaces.converted(values, np.dtype(dtype))
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, values)
  with pytest.raises(ValueError, match="must be of int64, .*float64"):
    spaces.converted([0.9], np.dtype(np.int64))


@pytest.mark.parametrize(
  "space",
  [gym.Text(4), gym.Sequence(_BOX), gym.Graph(_BOX, None), gym.OneOf([_BOX, _BOX])],
  ids=lambda space: type(space).__name__,
)
def test_errors_name_the_space_that_is_not_supported(space):
  name = type(space).__name__
  for outer in (space, gym.Dict({"part": space})):
    with pytest.raises(TypeError, match=f"Observation space {name}"):
      spaces.check(outer, _BOX)
    with pytest.raises(TypeError, match=f"Action space {name}"):
      spaces.check(_BOX, outer)


def test_integer_boxes_are_refused_as_action_spaces():
  space = gym.Box(0, 255, (2,), np.uint8)
  spaces.check(space, _BOX)
  with pytest.raises(TypeError, match="Action space Box.*floating-point"):
    spaces.check(_BOX, space)


_EMPTY = gym.Box(-1, 1, (0,), np.float32)


@pytest.mark.parametrize("space", [_EMPTY, gym.Tuple([_EMPTY])])
def test_observations_without_elements_are_refused(space):
  with pytest.raises(TypeError, match="Observation space .* has no elements"):
    spaces.check(space, _BOX)
  spaces.check(gym.Tuple([_EMPTY, _BOX]), _BOX)


@pytest.mark.parametrize("space", [gym.Dict({}), gym.Tuple([])])
def test_empty_composite_spaces_are_refused(space):
  with pytest.raises(TypeError, match="it has no (parts|elements)"):
    spaces.check(space, _BOX)
