import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import spaces
from agents.ops import packing
from tests import modes

gym = gymnasium.spaces
_BOX = gym.Box(-1, 1, (2,), np.float32)
_NESTED = gym.Dict({
    "position": gym.Box(-9, 9, (3,), np.float64),
    "camera": gym.Box(0, 255, (4, 5, 1), np.uint8),
    "rest": gym.Tuple([
        gym.Discrete(5, start=2), gym.MultiBinary(4),
        gym.MultiDiscrete([3, 4], start=[0, 7]),
        gym.Box(-999, 999, (), np.int16), gym.Box(0, 1, (2, 1), np.bool_),
        gym.Dict({"large": gym.Box(0, 2 ** 62, (1,), np.uint64)})])})


def _filled(amount=6):
  """Return values, and the array they were written to."""
  _NESTED.seed(0)
  values = [_NESTED.sample() for _ in range(amount)]
  if amount:
    values[0]["rest"][5]["large"][0] = 2 ** 63 - 1  # No float holds it.
  kind, shape = spaces.dtype(_NESTED)
  array = np.zeros((amount, *shape), kind)
  write = spaces.writer(_NESTED, array)
  for row, value in enumerate(values):
    write(row, value)
  return values, array


@pytest.mark.parametrize("space, value", [
    (gym.Box(0, 255, (2,), np.uint8), np.array([3, 256])),
    (gym.Box(0, 255, (2,), np.uint8), np.array([0.5, 1.0])),
    (gym.Box(0, 255, (2,), np.uint8), [3, -1]),
    (gym.Box(0, 1, (2,), np.bool_), np.array([0, 2])),
    (gym.Discrete(4), 1.5),
    (gym.MultiBinary(2), np.array([1, 400]))])
def test_integers_that_would_not_stay_the_same_are_refused(space, value):
  for outer, told in (space, value), (gym.Dict(a=space), {"a": value}):
    kind, shape = spaces.dtype(outer)
    write = spaces.writer(outer, np.zeros((1, *shape), kind))
    with pytest.raises(ValueError, match="is not the same in the type"):
      write(0, told)


def test_integers_of_another_type_stay_the_same():
  array = np.zeros((1, 2), np.uint8)
  write = spaces.writer(gym.Box(0, 255, (2,), np.uint8), array)
  for value in np.array([3, 255]), [7, 0], np.array([1.0, 2.0]):
    write(0, value)
    np.testing.assert_array_equal(array[0], value)


def _part(value, leaf):
  for key in leaf.path:
    value = value[key if isinstance(value, dict) else int(key)]
  return value


def test_elements_have_a_field_for_each_part():
  values, array = _filled()
  for row, value in enumerate(values):
    np.testing.assert_array_equal(array["camera"][row], value["camera"])
    np.testing.assert_array_equal(
        array["position"][row], value["position"].astype(np.float32))
    assert array["rest"]["0"][row] == value["rest"][0]
    assert array["rest"]["5"]["large"][row] == value["rest"][5]["large"]


def test_leaves_say_where_each_part_lies():
  values, array = _filled()
  packed = spaces.as_bytes(array)
  assert packed.shape == (6, array.dtype.itemsize)
  for leaf in spaces.leaves(_NESTED):
    raw = packed[:, leaf.offset:leaf.offset + leaf.num_bytes]
    found = np.ascontiguousarray(raw).view(leaf.dtype).reshape(-1, *leaf.shape)
    for row, value in enumerate(values):
      np.testing.assert_array_equal(
          found[row], np.asarray(_part(value, leaf)).astype(leaf.dtype))


@modes.eager_and_compiled
def test_the_graph_finds_the_same_parts(prepare):
  _, array = _filled()
  leaves = spaces.leaves(_NESTED)
  parts = prepare(lambda packed: packing.unpack(packed, leaves))(
      tf.constant(spaces.as_bytes(array)))
  for part, column in zip(parts, spaces.columns(array), strict=True):
    assert part.dtype == tf.as_dtype(column.dtype)
    np.testing.assert_array_equal(part, column)


@modes.eager_and_compiled
def test_packing_undoes_unpacking(prepare):
  space = gym.Dict({"a": _BOX, "b": gym.Discrete(3), "c": gym.MultiBinary(2)})
  kind, _ = spaces.dtype(space, acting=True)
  array = np.zeros(5, kind)
  array["a"], array["b"] = np.arange(10).reshape(5, 2), np.arange(5)
  packed = spaces.as_bytes(array)
  leaves = spaces.leaves(space, acting=True)
  def there_and_back(packed):
    return packing.pack(packing.unpack(packed, leaves))
  np.testing.assert_array_equal(
      prepare(there_and_back)(tf.constant(packed)), packed)
  np.testing.assert_array_equal(spaces.from_bytes(packed, kind), array)


def test_no_elements_are_fine():
  _, array = _filled(0)
  assert spaces.as_bytes(array).shape == (0, array.dtype.itemsize)


def test_simple_values_stay_arrays_of_their_own():
  array = np.zeros((3, 2), np.float32)
  spaces.writer(_BOX, array)(1, np.array([1.0, 2.0]))
  np.testing.assert_array_equal(array, [[0, 0], [1, 2], [0, 0]])
  assert spaces.as_bytes(array) is array
  assert spaces.columns(array)[0] is array


def test_a_part_that_is_missing_or_misshapen_is_named():
  value = _filled(1)[0][0]
  wrong = {**value, "camera": value["camera"][0]}
  with pytest.raises(ValueError, match=r"\['camera'\] has shape \(5, 1\)"):
    spaces.values(_NESTED, wrong)
  del wrong["camera"]
  with pytest.raises(ValueError, match=r"no \['camera'\]"):
    spaces.values(_NESTED, wrong)
  with pytest.raises(ValueError, match=r"no \['rest'\]\['5'\]"):
    spaces.values(_NESTED, {**value, "rest": value["rest"][:5]})


@pytest.mark.parametrize("space, value", [
    (_BOX, np.zeros(1, np.float32)), (_BOX, np.float32(0)),
    (_BOX, np.zeros((1, 2), np.float32)), (gym.MultiDiscrete([3, 3]), 1),
    (gym.Discrete(3), np.zeros(1, np.int64))])
def test_what_would_be_broadcast_is_refused(space, value):
  array = np.zeros((3, *space.shape), space.dtype)
  with pytest.raises(ValueError, match="observation has shape .*, its space"):
    spaces.writer(space, array)(1, value)
  assert not array.any()


def test_numbers_become_others_without_a_loss():
  for values, kind in (([0.5, 1], np.float32), (np.array([1.5]), np.float32),
                       ([1, 2], np.float32), (np.ones(2, np.int32), np.int64),
                       ([True], np.int64)):
    array = spaces.converted(values, np.dtype(kind))
    assert array.dtype == kind
    np.testing.assert_array_equal(array, values)
  with pytest.raises(ValueError, match="must be of int64, .*float64"):
    spaces.converted([0.9], np.dtype(np.int64))


@pytest.mark.parametrize("space", [
    gym.Text(4), gym.Sequence(_BOX), gym.Graph(_BOX, None),
    gym.OneOf([_BOX, _BOX])], ids=lambda space: type(space).__name__)
def test_other_spaces_are_refused_by_name(space):
  name = type(space).__name__
  for whole in (space, gym.Dict({"part": space})):
    with pytest.raises(TypeError, match=f"Observation space {name}"):
      spaces.check(whole, _BOX)
    with pytest.raises(TypeError, match=f"Action space {name}"):
      spaces.check(_BOX, whole)


def test_boxes_of_whole_numbers_are_no_action_space():
  space = gym.Box(0, 255, (2,), np.uint8)
  spaces.check(space, _BOX)
  with pytest.raises(TypeError, match="Action space Box.*floating-point"):
    spaces.check(_BOX, space)


@pytest.mark.parametrize("space", [gym.Dict({}), gym.Tuple([])])
def test_spaces_that_hold_nothing_are_refused(space):
  with pytest.raises(TypeError, match="holds nothing"):
    spaces.check(space, _BOX)
