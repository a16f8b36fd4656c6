"""Fields lie in one buffer without touching, and hold what spaces promise."""

import gymnasium
import numpy as np
import pytest

from agents.environments.data import buffer_layout

_BOX = gymnasium.spaces.Box(-1, 1, (2, 3), np.float32)


def _field(name, dtype, *shape):
  return buffer_layout.Field(name, np.dtype(dtype), shape)


_FIELDS = [_field("byte", np.uint8, 5), _field("flag", np.bool_, 3),
           _field("number", np.float32, 7, 2), _field("none", np.int64, 0),
           _field("scalar", np.int64), _field("large", np.float64, 9, 1)]


def test_views_are_the_buffers_own_memory():
  fields = buffer_layout.Layout(_FIELDS)
  buffer = np.zeros(fields.num_bytes, np.uint8)
  for number, (field, view) in enumerate(
      zip(_FIELDS, fields.views(buffer).values())):
    assert view.shape == field.shape and view.dtype == field.dtype
    view[...] = number % 2 + 1
  # None has written over another.
  for number, (field, view) in enumerate(
      zip(_FIELDS, fields.views(buffer.copy()).values())):
    assert (view == np.array(number % 2 + 1).astype(field.dtype)).all()


def test_fields_are_aligned_and_in_order():
  fields = buffer_layout.Layout(_FIELDS)
  end = 0
  for field, offset in zip(fields.fields, fields.offsets):
    assert offset % fields.ALIGNMENT == 0
    assert end <= offset < end + fields.ALIGNMENT
    end = offset + field.num_bytes
  assert end <= fields.num_bytes < end + fields.ALIGNMENT


@pytest.mark.parametrize("space, dtype, shape", [
    (_BOX, np.float32, (4, 2, 3)),
    (gymnasium.spaces.Box(-1, 1, (), np.float64), np.float32, (4,)),
    (gymnasium.spaces.Discrete(7, start=3), np.int64, (4,))])
def test_actions(space, dtype, shape):
  assert buffer_layout.action_layout(4, space).fields == [
      ("action", dtype, shape), ("active", np.bool_, (4,))]


_observations = pytest.mark.parametrize("space, dtype, shape", [
    (_BOX, np.float32, (4, 2, 3)),
    (gymnasium.spaces.Box(-1, 1, (5,), np.float64), np.float32, (4, 5)),
    (gymnasium.spaces.Box(-1, 1, (), np.float32), np.float32, (4,)),
    (gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8), np.uint8,
     (4, 8, 8, 3)),
    (gymnasium.spaces.Discrete(7), np.int64, (4,))])


@_observations
def test_answers(space, dtype, shape):
  assert buffer_layout.step_layout(4, space).fields == [
      ("observ", dtype, shape), ("reward", np.float32, (4,)),
      ("terminated", np.bool_, (4,)), ("truncated", np.bool_, (4,)),
      ("valid", np.bool_, (4,))]


@_observations
def test_what_is_left_beside_the_answers(space, dtype, shape):
  assert buffer_layout.final_layout(4, space).fields == [
      ("final_observ", dtype, shape), ("seconds", np.float64, (4,))]


@_observations
def test_answers_hold_the_observation_once(space, dtype, shape):
  once = np.zeros(shape, dtype).nbytes
  line = buffer_layout.Layout.ALIGNMENT
  # Reward and three flags take a line each.
  assert buffer_layout.step_layout(4, space).num_bytes == (
      -(-once // line) * line + 4 * line)


def test_batch_is_actions_answers_and_what_is_beside_them():
  spaces = _BOX, gymnasium.spaces.Discrete(3)
  layouts = [buffer_layout.action_layout(5, spaces[1]),
             buffer_layout.step_layout(5, spaces[0]),
             buffer_layout.final_layout(5, spaces[0])]
  sizes = [part.num_bytes for part in layouts]
  assert buffer_layout.batch_bytes(5, *spaces) == sum(sizes)
  buffer = np.random.default_rng(0).integers(0, 256, sum(sizes), np.uint8)
  views = buffer_layout.batch_views(buffer, 5, *spaces)
  assert list(views) == ["action", "active", "observ", "reward", "terminated",
                         "truncated", "valid", "final_observ", "seconds"]
  assert views["action"].tobytes() == buffer[:5 * 8].tobytes()
  for number, part in enumerate(layouts):
    begin = sum(sizes[:number])
    alone = part.views(buffer[begin:begin + sizes[number]])
    for name, array in alone.items():
      assert np.shares_memory(array, views[name])
      assert array.shape == views[name].shape
      assert array.tobytes() == views[name].tobytes()
