"""Networks receive only the named parts of an observation."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import build, spaces
from agents import config as config_lib
from agents.networks import frame_encoder, observation_parts

_BOX = gymnasium.spaces.Box
_SPACE = gymnasium.spaces.Dict(
  {
    "camera": _BOX(0, 255, (36, 36), np.uint8),
    "choice": gymnasium.spaces.MultiDiscrete([2, 3]),
    "robot": gymnasium.spaces.Dict(
      {"joints": _BOX(-1, 1, (2, 2)), "wrist camera": _BOX(0, 255, (36, 40, 3), np.uint8)}
    ),
    "robot speed": _BOX(-1, 1, (3,)),
    "switch": gymnasium.spaces.Discrete(4, start=1),
  }
)
_PATHS = [leaf.path for leaf in spaces.leaves(_SPACE)]


@pytest.mark.parametrize(
  "names, paths",
  [
    (None, _PATHS),
    (("robot",), [("robot", "joints"), ("robot", "wrist camera")]),
    (("robot/joints",), [("robot", "joints")]),
    (("switch", "choice"), [("choice",), ("switch",)]),
  ],
)
def test_a_name_selects_a_part_and_all_parts_within(names, paths):
  leaves = observation_parts.leaves(_SPACE, names, "network.policy_observ")
  assert [leaf.path for leaf in leaves] == paths


def test_names_may_contain_slashes():
  space = gymnasium.spaces.Dict({"walker/height": _BOX(-1, 1, ()), "walker/speed": _BOX(-1, 1, ())})
  leaves = observation_parts.leaves(space, ("walker/speed",), "network.policy_observ")
  assert [leaf.path for leaf in leaves] == [("walker/speed",)]


@pytest.mark.parametrize(
  "space, name, message",
  [
    (_SPACE, "swich", "no part 'swich'. Did you mean 'switch'?"),
    (_SPACE, "robot/legs", "The parts are: camera, choice, robot, robot/joints, "),
    (_BOX(-1, 1, (2,)), "joints", "no part 'joints'. It has no parts."),
  ],
)
def test_unknown_parts_are_errors(space, name, message):
  with pytest.raises(config_lib.ConfigError) as caught:
    observation_parts.leaves(space, (name,), "network.value_observ")
  assert message in str(caught.value)
  assert str(caught.value).startswith("network.value_observ: ")


def _sample(rng, stack=()):
  """Returns observations of two steps as bytes, [2, ...]."""
  observ = np.zeros((2, *stack), spaces.dtype(_SPACE)[0])
  for leaf, column in zip(spaces.leaves(_SPACE), spaces.columns(observ), strict=True):
    for index in np.ndindex(observ.shape):
      leaf.space.seed(int(rng.integers(1000)))
      column[index] = leaf.space.sample()
  return observ


@pytest.mark.parametrize("stack", [1, 3])
def test_selected_inputs_are_those_of_the_parts(stack):
  """Compares with the encoder of each part alone."""
  encoder = frame_encoder.make(_SPACE, None, 10.0, stack, frame_indices=False)
  observ = _sample(np.random.default_rng(0), (stack,) if stack > 1 else ())
  inputs = encoder.inputs(tf.constant(spaces.as_bytes(observ)))
  leaves = dict(zip(_PATHS, spaces.leaves(_SPACE), strict=True))
  columns = dict(zip(_PATHS, spaces.columns(observ), strict=True))
  for path, leaf in leaves.items():
    select = observation_parts.ObservationParts(_SPACE, [leaf], stack)
    alone = frame_encoder.make(leaf.space, None, 10.0, stack, frame_indices=False)
    expected = alone.inputs(tf.constant(columns[path]))
    selected = select(inputs)
    assert len(selected) == len(expected)
    for one, other in zip(selected, expected, strict=True):
      np.testing.assert_array_equal(one, other)


_KINDS = {
  "vectors": {},
  "frames": {"network.frame_stack": 2},
  "gru": {"network.recurrent": "gru", "algorithm.minibatch_size": None},
}


def _algorithm(kind, **changes):
  config = config_lib.Config().override({**_KINDS[kind], **changes})
  algorithm = build.algorithm(config, _SPACE, _BOX(-1, 1, (2,)))
  # Weights are random, because initial last layers are almost zero. They are
  # small, because activations must not saturate.
  rng = np.random.default_rng(0)
  for variable in algorithm.weights:
    num_inputs = np.prod(variable.shape[:-1])
    variable.assign(rng.normal(size=variable.shape) / np.sqrt(num_inputs))
  return algorithm


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
  "kind, visible",
  [
    ("frames", ("choice", "robot/joints")),
    *(
      pytest.param(kind, visible, marks=pytest.mark.slow)
      for kind, visible in (
        ("vectors", ("robot",)),
        ("vectors", ("choice", "robot/joints")),
        ("frames", ("robot",)),
        ("gru", ("robot",)),
        ("gru", ("choice", "robot/joints")),
      )
    ),
  ],
)
def test_actions_depend_only_on_visible_parts(kind, visible):
  algorithm = _algorithm(kind, **{"network.policy_observ": visible})
  observ = _sample(np.random.default_rng(0))
  other = _sample(np.random.default_rng(1))

  def act(observ):
    state = algorithm.initial_state(2)
    for _ in range(2):
      action, state = algorithm.act(tf.constant(spaces.as_bytes(observ)), state, None)
    return action.numpy()

  before = act(observ)
  for path, name in zip(_PATHS, map("/".join, _PATHS), strict=True):
    changed = observ.copy()
    target, source = (
      dict(zip(_PATHS, spaces.columns(array), strict=True))[path] for array in (changed, other)
    )
    target[...] = source
    is_visible = any(f"{name}/".startswith(f"{part}/") for part in visible)
    assert is_visible != np.array_equal(act(changed), before), name


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
  "settings, share_core",
  [
    ({"network.policy_observ": ["robot"]}, True),
    ({"network.value_observ": ["robot"]}, False),
    ({"network.policy_observ": ["robot"], "network.value_observ": ["switch", "robot"]}, True),
  ],
)
def test_networks_with_different_parts_share_no_weights(settings, share_core):
  algorithm = _algorithm("vectors", **settings, **{"network.share_core": share_core})
  names = [getattr(weight, "path", weight.name) for weight in algorithm.weights]
  images = [name for name in names if "image" in name]
  assert images and not any(name.startswith("core") for name in images)
  seen = {name: settings.get(f"network.{name}_observ") for name in ("policy", "value")}
  for name, parts in seen.items():
    cameras = {each.split("_conv")[0].split("/")[0] for each in images if each.startswith(name)}
    assert len(cameras) == (2 if parts is None else 1)


@pytest.mark.usefixtures("eagerly")
def test_networks_with_the_same_parts_share_convolutions():
  parts = {"network.policy_observ": ["robot"], "network.value_observ": ["robot"]}
  algorithm = _algorithm("vectors", **parts)
  names = [getattr(weight, "path", weight.name) for weight in algorithm.weights]
  assert {name.partition("_")[0] for name in names if "image" in name} == {"core"}
