"""Tests the distributions over all action spaces, and their products."""

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces as gym

from agents import build, spaces
from agents import config as config_lib
from agents.networks import distribution_for_space, feed_forward
from agents.ops import loops, random, tensor_bytes
from tests.networks import drawing

_BOX = gym.Box(-1, 1, (2,), np.float32)
_PARTS = {
  "arm": gym.Tuple([gym.Box(-2, 1, (2, 2)), gym.Discrete(3, start=5)]),
  "keys": gym.MultiBinary(3),
  "legs": gym.Box(-1, 1, (2, 2)),
  "modes": gym.MultiDiscrete([3, 2], start=[1, -1]),
}
_SPACES = {
  "box": _BOX,
  "unbounded": gym.Box(-np.inf, np.inf, (2, 2), np.float32),
  "scalar": gym.Box(0, 1, (), np.float64),
  "choice": gym.Discrete(3, start=7),
  "choices": gym.MultiDiscrete([[3, 2], [4, 2]]),
  "bits": gym.MultiBinary([2, 3]),
  "dict": gym.Dict(_PARTS),
  "tuple": gym.Tuple([_BOX, gym.Dict(_PARTS), _BOX]),
}


def _distribution(name, kind="gaussian", **changes):
  return distribution_for_space.make(
    _SPACES[name], config_lib.Network(action_distribution=kind, **changes)
  )


_each_kind = pytest.mark.parametrize(
  "name, kind",
  [
    *((name, "gaussian") for name in _SPACES),
    ("box", "beta"),
    ("box", "squashed_gaussian"),
    ("dict", "beta"),
  ],
)


@pytest.mark.slow
@pytest.mark.parametrize(
  "name, kind", [(name, kind) for name, kind in _each_kind.args[1] if name != "tuple"]
)
def test_actions_have_type_and_shape_of_the_space(name, kind):
  dist = _distribution(name, kind)
  first, second = (tf.constant(drawing.parameters(dist, seed)) for seed in (0, 1))
  noise = dist.noise(4, tf.constant([3, 4], tf.int64))
  assert noise.shape == (4, dist.noise_size)
  action = dist.sample(first, noise)

  def actions(first, noise):
    return dist.sample(first, noise), dist.mode(first)

  def numbers(first, second, action):
    return (
      dist.log_prob(first, action),
      dist.entropy(first),
      dist.kl(first, second),
      dist.std(first),
      dist.saturation(action),
    )

  dtype, shape = spaces.dtype(_SPACES[name], is_action=True)
  for eager, compiled in zip(
    actions(first, noise), tf.function(actions, jit_compile=True)(first, noise)
  ):
    assert eager.shape == compiled.shape == (4, *dist.shape)
    if dtype.names is None:
      assert (eager.dtype, dist.shape) == (dtype, shape)
    eager, compiled = (
      spaces.columns(spaces.from_bytes(action.numpy(), dtype)) for action in (eager, compiled)
    )
    for one, other in zip(eager, compiled, strict=True):
      np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
  for eager, compiled in zip(
    numbers(first, second, action), tf.function(numbers, jit_compile=True)(first, second, action)
  ):
    assert eager.shape == compiled.shape == (4,)
    np.testing.assert_allclose(eager, compiled, rtol=1e-3, atol=1e-4)


@_each_kind
def test_samples_repeat_for_equal_keys_and_kl_to_itself_is_zero(name, kind):
  dist = _distribution(name, kind)
  parameters = tf.constant(drawing.parameters(dist, 0, rows=20))
  first, again, other = (drawing.sample(dist, parameters, counter).numpy() for counter in (0, 0, 1))
  np.testing.assert_array_equal(first, again)
  assert (first != other).any()
  np.testing.assert_allclose(dist.kl(parameters, parameters), np.zeros(20), atol=1e-5)


@pytest.mark.fast_variants(4)
@_each_kind
def test_entropy_and_kl_equal_means_over_samples(name, kind):
  dist = _distribution(name, kind)
  first, second = (tf.constant(drawing.parameters(dist, seed, 1)) for seed in (0, 1))
  num_samples = 20_000
  rows = tf.repeat(first, num_samples, 0)
  action = drawing.sample(dist, rows)
  log_prob = dist.log_prob(rows, action).numpy().astype(np.float64)
  ratio = log_prob - dist.log_prob(tf.repeat(second, num_samples, 0), action).numpy()
  for values, expected in ((-log_prob, dist.entropy(first)), (ratio, dist.kl(first, second))):
    error = values.std() / np.sqrt(num_samples)
    assert abs(values.mean() - expected.numpy()[0]) < 5 * error + 2e-3


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize(
  "name, kind, size",
  [
    *((name, kind, 4.0) for name, kind in _each_kind.args[1]),
    *((name, "gaussian", 1e4) for name in ("choice", "choices", "bits")),
  ],
)
def test_gradients_of_extreme_parameters_are_finite(name, kind, size):
  # A log std of 4 is a std of 55; logits of 1e4 fix the actions.
  dist = _distribution(name, kind)
  parameters = tf.constant(size * np.sign(drawing.parameters(dist, 0, rows=50)))
  action = drawing.sample(dist, parameters)
  for function in (
    lambda x: dist.log_prob(x, action),
    dist.entropy,
    lambda x: dist.kl(parameters, x),
    lambda x: dist.kl(-parameters, x),
  ):
    with tf.GradientTape() as tape:
      tape.watch(parameters)
      result = function(parameters)
    assert np.isfinite(result).all()
    assert np.isfinite(tape.gradient(result, parameters)).all()


def _parts_of(name, parameters, kind):
  """Returns the distribution of each leaf of a space, and its parameters."""
  config = config_lib.Network(action_distribution=kind)
  parts = [distribution_for_space.make(leaf.space, config) for leaf in spaces.leaves(_SPACES[name])]
  ends = np.cumsum([part.size for part in parts])
  assert ends[-1] == parameters.shape[-1]
  return parts, np.split(parameters, ends[:-1], -1)


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(
  "name, kind",
  [("dict", "gaussian"), ("dict", "squashed_gaussian"), ("dict", "beta"), ("tuple", "gaussian")],
)
def test_product_results_are_sums_or_means_over_the_factors(name, kind):
  dist = _distribution(name, kind)
  first, second = (drawing.parameters(dist, seed) for seed in (0, 1))
  parts, firsts = _parts_of(name, first, kind)
  _, seconds = _parts_of(name, second, kind)
  # Environments receive NumPy elements with this layout.
  structure, _ = spaces.dtype(_SPACES[name], is_action=True)

  def columns(action):
    return spaces.columns(spaces.from_bytes(action.numpy(), structure))

  action = drawing.sample(dist, tf.constant(first))

  def total(method, *each):
    return np.sum(
      [getattr(part, method)(*args) for part, *args in zip(parts, *each, strict=True)], 0
    )

  for method, arguments, each, scale in [
    ("log_prob", (first, action), (firsts, columns(action)), 1),
    ("entropy", (first,), (firsts,), 1),
    ("kl", (first, second), (firsts, seconds), 1),
    ("std", (first,), (firsts,), 1 / len(parts)),
    ("saturation", (action,), (columns(action),), 1 / len(parts)),
  ]:
    np.testing.assert_allclose(
      getattr(dist, method)(*arguments),
      scale * total(method, *each),
      rtol=1e-4,
      atol=1e-5,
      err_msg=method,
    )
  for part, parameters, column in zip(parts, firsts, columns(dist.mode(first)), strict=True):
    np.testing.assert_array_equal(column, part.mode(parameters))


def test_equal_factors_are_sampled_independently():
  dist = _distribution("tuple")
  action = drawing.sample(dist, tf.zeros([5000, dist.size]))
  leaves = spaces.leaves(_SPACES["tuple"], is_action=True)
  parts = tensor_bytes.unpack(action, leaves)
  correlation = np.corrcoef(parts[0][:, 0], parts[-1][:, 0])[0, 1]
  assert abs(correlation) < 5 / np.sqrt(5000)
  for part in (parts[0], parts[-1]):
    assert abs(np.std(part) - 1) < 0.05


def test_factors_have_the_parameters_of_single_distributions():
  config = config_lib.Network(policy_layers=(3,), init_std=0.3)
  dist = distribution_for_space.make(_SPACES["dict"], config)
  policy = feed_forward.Policy(dist, config, 0)
  parts, found = _parts_of("dict", policy(tf.zeros([1, 2])).numpy(), "gaussian")
  for part, parameters in zip(parts, found, strict=True):
    np.testing.assert_allclose(
      parameters,
      part.parameters(
        tf.zeros([1, part.initial_outputs.size]),
        tf.constant(np.log(0.3, dtype=np.float32) + 0 * part.initial_free),
      ),
      rtol=1e-6,
    )
  assert [weight.shape for weight in policy.trainable_variables if weight.name == "log_std"] == [
    (8,)
  ]


@pytest.mark.parametrize("kind", ["squashed_gaussian", "beta"])
@pytest.mark.parametrize(
  "space",
  [
    _SPACES["unbounded"],
    gym.Box(0, np.inf),
    gym.Box(np.float32([-1, -np.inf]), np.float32([1, 1])),
    gym.Dict(a=_BOX, b=_SPACES["unbounded"]),
  ],
  ids=str,
)
def test_unbounded_spaces_accept_only_gaussians(space, kind):
  config = config_lib.Config().override({"network.action_distribution": kind})
  with pytest.raises(config_lib.ConfigError) as caught:
    build.algorithm(config, _BOX, space)
  for part in ("network.action_distribution", kind, "'gaussian'", "Box"):
    assert part in str(caught.value)
  build.algorithm(config, _BOX, gym.Discrete(2))  # Ignores the setting.


@pytest.mark.slow
@pytest.mark.parametrize(
  "name, kind",
  [
    ("box", "gaussian"),
    ("box", "squashed_gaussian"),
    ("box", "beta"),
    ("choices", "gaussian"),
    ("bits", "gaussian"),
    ("dict", "gaussian"),
  ],
)
def test_rewarded_actions_become_probable(name, kind):
  # Learns with REINFORCE (Williams 1992). The action with the highest reward is
  # 0.5 in Box spaces and 1 in discrete spaces.
  dist = _distribution(name, kind)
  leaves = spaces.leaves(_SPACES[name], is_action=True)

  def rewards(action):
    parts = tensor_bytes.unpack(action, leaves) if spaces.composite(_SPACES[name]) else [action]

    def near(part):
      numbers = part.dtype == tf.float32
      errors = tf.abs(tf.cast(part, tf.float32) - (0.5 if numbers else 1.0))
      return tf.reduce_mean(tf.reshape(tf.exp(-4 * tf.square(errors)), [part.shape[0], -1]), -1)

    return tf.add_n([near(part) for part in parts]) / len(parts)

  num_samples = 200

  def step(index, parameters):
    noise = dist.noise(num_samples, random.key(0, index))
    with tf.GradientTape() as tape:
      tape.watch(parameters)
      rows = tf.zeros([num_samples, 1]) + parameters
      action = dist.sample(tf.stop_gradient(rows), noise)
      reward = rewards(action)
      advantage = reward - tf.reduce_mean(reward)
      gain = tf.reduce_mean(dist.log_prob(rows, action) * advantage)
    return parameters + 0.1 * tf.math.l2_normalize(tape.gradient(gain, parameters))

  @tf.function(jit_compile=True)
  def learned(parameters):
    return loops.repeat(100, step, parameters)

  begin = tf.zeros([dist.size])
  end = learned(begin)
  before, after = (
    rewards(drawing.sample(dist, tf.zeros([1000, 1]) + parameters)) for parameters in (begin, end)
  )
  assert np.mean(after) > 0.5 * (1 + np.mean(before))
