"""Fields share one buffer without overlap and have the types of the spaces."""

import gymnasium
import numpy as np
import pytest

from agents import spaces
from agents.environments.data import buffer_layout

_BOX = gymnasium.spaces.Box(-1, 1, (2, 3), np.float32)
_CACHE_LINE = 64
_SPECS = [
  ("byte", np.uint8, (5,)),
  ("flag", np.bool_, (3,)),
  ("number", np.float32, (7, 2)),
  ("none", np.int64, (0,)),
  ("scalar", np.int64, ()),
  ("large", np.float64, (9, 1)),
]


def _specs(layout):
  return [field[:3] for field in layout.fields]


def test_views_share_the_buffer_without_overlap():
  layout = buffer_layout.Layout(_SPECS)
  buffer = np.zeros(layout.num_bytes, np.uint8)
  for index, (field, view) in enumerate(zip(layout.fields, layout.views(buffer).values())):
    assert view.shape == field.shape and view.dtype == field.dtype
    view[...] = index % 2 + 1
  for index, (field, view) in enumerate(zip(layout.fields, layout.views(buffer.copy()).values())):
    assert (view == np.array(index % 2 + 1).astype(field.dtype)).all()


def test_fields_are_aligned_and_in_order():
  layout = buffer_layout.Layout(_SPECS)
  assert _specs(layout) == _SPECS
  end = 0
  for field in layout.fields:
    start, stop = field.byte_slice.start, field.byte_slice.stop
    assert start % _CACHE_LINE == 0
    assert end <= start < end + _CACHE_LINE
    assert stop - start == np.zeros(field.shape, field.dtype).nbytes
    end = stop
  assert end <= layout.num_bytes < end + _CACHE_LINE


def test_structured_observations_are_vectors_of_bytes_in_the_graph():
  space = gymnasium.spaces.Dict(a=_BOX, b=gymnasium.spaces.Discrete(3))
  dtype, _ = spaces.dtype(space)
  observ, reward, *_ = buffer_layout.step_layout(4, space).fields
  assert (observ.dtype, observ.shape) == (dtype, (4,))
  assert observ.graph_dtype == np.uint8
  assert observ.graph_shape == (4, dtype.itemsize)
  assert (reward.graph_dtype, reward.graph_shape) == (np.float32, (4,))


@pytest.mark.parametrize(
  "space, dtype, shape",
  [
    (_BOX, np.float32, (4, 2, 3)),
    (gymnasium.spaces.Box(-1, 1, (), np.float64), np.float32, (4,)),
    (gymnasium.spaces.Discrete(7, start=3), np.int64, (4,)),
  ],
)
def test_action_layout_contains_actions_and_active(space, dtype, shape):
  assert _specs(buffer_layout.action_layout(4, space)) == [
    ("action", dtype, shape),
    ("active", np.bool_, (4,)),
  ]


_observations = pytest.mark.parametrize(
  "space, dtype, shape",
  [
    (_BOX, np.float32, (4, 2, 3)),
    (gymnasium.spaces.Box(-1, 1, (5,), np.float64), np.float32, (4, 5)),
    (gymnasium.spaces.Box(-1, 1, (), np.float32), np.float32, (4,)),
    (gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8), np.uint8, (4, 8, 8, 3)),
    (gymnasium.spaces.Discrete(7), np.int64, (4,)),
  ],
)


@_observations
def test_step_layout_contains_the_result_of_a_step(space, dtype, shape):
  assert _specs(buffer_layout.step_layout(4, space)) == [
    ("observ", dtype, shape),
    ("reward", np.float32, (4,)),
    ("terminated", np.bool_, (4,)),
    ("truncated", np.bool_, (4,)),
    ("valid", np.bool_, (4,)),
  ]


@_observations
def test_step_layout_contains_a_single_observation_array(space, dtype, shape):
  observ_bytes = np.zeros(shape, dtype).nbytes
  # The reward and each of the three flags take one cache line.
  assert buffer_layout.step_layout(4, space).num_bytes == (
    -(-observ_bytes // _CACHE_LINE) * _CACHE_LINE + 4 * _CACHE_LINE
  )


@_observations
def test_batch_layout_adds_final_observations_and_seconds(space, dtype, shape):
  action = gymnasium.spaces.Discrete(3)
  assert _specs(buffer_layout.batch_layout(4, space, action)) == [
    *_specs(buffer_layout.action_layout(4, action)),
    *_specs(buffer_layout.step_layout(4, space)),
    ("final_observ", dtype, shape),
    ("seconds", np.float64, (4,)),
  ]


def test_action_and_step_layout_are_slices_of_the_batch_layout():
  both_spaces = _BOX, gymnasium.spaces.Discrete(3)
  layout = buffer_layout.batch_layout(5, *both_spaces)
  buffer = np.random.default_rng(0).integers(0, 256, layout.num_bytes, np.uint8)
  views = layout.views(buffer)
  assert list(views) == [
    "action",
    "active",
    "observ",
    "reward",
    "terminated",
    "truncated",
    "valid",
    "final_observ",
    "seconds",
  ]
  assert views["action"].tobytes() == buffer[: 5 * 8].tobytes()
  start = 0
  for layout in (
    buffer_layout.action_layout(5, both_spaces[1]),
    buffer_layout.step_layout(5, both_spaces[0]),
  ):
    separate = layout.views(buffer[start : start + layout.num_bytes])
    start += layout.num_bytes
    for name, array in separate.items():
      assert np.shares_memory(array, views[name])
      assert array.shape == views[name].shape
      assert array.tobytes() == views[name].tobytes()
