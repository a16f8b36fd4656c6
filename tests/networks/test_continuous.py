"""Compares continuous distributions with closed forms and integrals."""

import functools

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from agents import config as config_lib
from agents.networks import distribution_for_space
from tests.networks import drawing
from tests.support import modes


def _distribution(kind, shape=(1,), **changes):
  return distribution_for_space.make(
    gymnasium.spaces.Box(-1, 1, shape, np.float32),
    config_lib.Network(action_distribution=kind, **changes),
  )


_gaussian = functools.partial(_distribution, "gaussian")


_each_shape = pytest.mark.parametrize("shape, num_dims", [((), 1), ((3,), 3), ((2, 3), 6)])


@_each_shape
def test_gaussian_results_have_the_shapes_of_the_space(shape, num_dims):
  dist = _gaussian(shape)
  parameters = tf.constant(drawing.parameters(dist, 0))
  assert (dist.noise_size, dist.size) == (num_dims, 2 * num_dims)
  for action in (dist.mode(parameters), drawing.sample(dist, parameters)):
    assert action.shape == (4, *shape) and action.dtype == tf.float32
    assert dist.log_prob(parameters, action).shape == (4,)
  for result in (dist.entropy(parameters), dist.std(parameters), dist.kl(parameters, parameters)):
    assert result.shape == (4,)


@modes.eager_and_compiled
@_each_shape
def test_gaussian_log_prob_equals_the_closed_form(prepare, shape, num_dims):
  dist = _gaussian(shape)
  parameters = drawing.parameters(dist, 0)
  # `log_prob` does not clip actions outside the space.
  action = 5 * np.random.default_rng(1).normal(size=(4, *shape))
  mean, log_std = np.split(parameters.astype(np.float64), 2, -1)
  deviation = (action.reshape(4, num_dims) - mean) / np.exp(log_std)
  expected = (-0.5 * deviation**2 - log_std - 0.5 * np.log(2 * np.pi)).sum(-1)
  np.testing.assert_allclose(
    prepare(dist.log_prob)(tf.constant(parameters), tf.constant(action, tf.float32)),
    expected,
    rtol=1e-5,
  )


def test_gaussian_entropy_and_kl_equal_integrals():
  dist = _gaussian((1,))
  grid = np.linspace(-12, 12, 24_001)
  width = grid[1] - grid[0]
  first = np.array([[0.5, np.log(0.7)]], np.float32)
  second = np.array([[-0.3, np.log(1.2)]], np.float32)

  def log_density(parameters):
    return (
      dist.log_prob(tf.repeat(parameters, len(grid), 0), tf.constant(grid[:, None], tf.float32))
      .numpy()
      .astype(np.float64)
    )

  log_p, log_q = log_density(first), log_density(second)
  p = np.exp(log_p)
  assert abs((p * width).sum() - 1) < 1e-5
  np.testing.assert_allclose(
    dist.entropy(tf.constant(first)), [-(p * log_p * width).sum()], rtol=1e-4
  )
  np.testing.assert_allclose(
    dist.kl(tf.constant(first), tf.constant(second)),
    [(p * (log_p - log_q) * width).sum()],
    rtol=1e-4,
  )


@modes.eager_and_compiled
def test_gaussian_entropy_and_kl_equal_the_closed_forms(prepare):
  dist = _gaussian((2, 3))
  first, second = drawing.parameters(dist, 0), drawing.parameters(dist, 1)

  def entropy_and_kl(first, second):
    return dist.entropy(first), dist.kl(first, second)

  entropy, kl = prepare(entropy_and_kl)(tf.constant(first), tf.constant(second))
  mean, log_std = np.split(first.astype(np.float64), 2, -1)
  other_mean, other_log_std = np.split(second.astype(np.float64), 2, -1)
  np.testing.assert_allclose(entropy, (log_std + 0.5 * np.log(2 * np.pi * np.e)).sum(-1), rtol=1e-5)
  expected = (
    other_log_std
    - log_std
    - 0.5
    + (np.exp(2 * log_std) + (mean - other_mean) ** 2) / (2 * np.exp(2 * other_log_std))
  )
  np.testing.assert_allclose(kl, expected.sum(-1), rtol=1e-5)


def test_gaussian_samples_have_mean_and_std_of_the_parameters():
  dist = _gaussian((2,))
  num_samples = 50_000
  mean, std = np.array([0.5, -3.0]), np.array([0.1, 2.0])
  parameters = tf.constant(
    np.tile(np.concatenate([mean, np.log(std)]), (num_samples, 1)), tf.float32
  )
  samples = drawing.sample(dist, parameters).numpy()
  error = std / np.sqrt(num_samples)
  assert (np.abs(samples.mean(0) - mean) < 5 * error).all()
  assert (np.abs(samples.std(0) - std) < 5 * error / np.sqrt(2)).all()
  assert abs(np.corrcoef(samples.T)[0, 1]) < 5 / np.sqrt(num_samples)


def test_gaussian_mode_and_std_equal_the_parameters():
  dist = _gaussian((2, 2))
  parameters = drawing.parameters(dist, 0)
  np.testing.assert_array_equal(dist.mode(parameters), parameters[:, :4].reshape(4, 2, 2))
  np.testing.assert_allclose(dist.std(parameters), np.exp(parameters[:, 4:]).mean(-1), rtol=1e-6)


@pytest.mark.parametrize("low, high", [(-1, 1), (-0.4, 0.4), (5, 10)])
def test_saturation_is_the_share_of_dimensions_out_of_bounds(low, high):
  # Agents act in [-1, 1] whatever the bounds of the space are.
  dist = distribution_for_space.make(gymnasium.spaces.Box(low, high, (2, 2)))
  action = tf.constant([[[0.0, 1.0], [-1.0, 0.5]], [[1.1, 0], [-3, 0]], [[5, 5], [5, 5]]])
  np.testing.assert_array_equal(dist.saturation(action), [0, 0.5, 1])


def test_unbounded_dimensions_are_not_saturated():
  action = tf.constant([[[0.0, 9.0], [-9.0, 0.5]]] * 3)
  unbounded = distribution_for_space.make(gymnasium.spaces.Box(-np.inf, np.inf, (2, 2)))
  np.testing.assert_array_equal(unbounded.saturation(action), [0, 0, 0])
  half = distribution_for_space.make(gymnasium.spaces.Box(0, np.inf, (2, 2)))
  np.testing.assert_array_equal(half.saturation(action), [0.25] * 3)


# Four distributions over one dimension: two wide ones (the second squashed one
# has two modes), one with its mode close to a bound, and a narrow one.
_PARAMETERS = {
  "gaussian": [[0.5, -0.3], [0.0, 0.7], [2.0, -0.5], [-0.3, -3.0]],
  "squashed_gaussian": [[0.1, -0.1], [0.2, 0.7], [2.0, -0.5], [-0.3, -3.0]],
  "beta": [[-8.0, -7.0], [1.0, 0.0], [3.0, -2.0], [90.0, 60.0]],
}
_each_density = pytest.mark.parametrize(
  "kind, parameters", [(kind, row) for kind, rows in _PARAMETERS.items() for row in rows]
)


def _oracle(kind, parameters):
  """Returns the exact log density as a function, and the limit of its grid."""
  first, second = np.float64(parameters)
  if kind == "beta":
    upper, lower = 1 + np.logaddexp(0, [first, second])
    return stats.beta(upper, lower, -1, 2).logpdf, 1
  normal = stats.norm(first, np.exp(second)).logpdf
  if kind == "squashed_gaussian":
    return lambda x: normal(np.arctanh(x)) - np.log(1 - x**2), 1
  return normal, 20


def _grid(limit):
  """Returns centers and widths of grid cells, which are smaller at the ends."""
  edges = limit * np.tanh(np.linspace(-8, 8, 20_001))
  return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def _log_density(dist, parameters, points):
  return (
    dist.log_prob(
      tf.constant([parameters] * len(points), tf.float32), tf.constant(points[:, None], tf.float32)
    )
    .numpy()
    .astype(np.float64)
  )


@_each_density
def test_densities_equal_their_definitions(kind, parameters):
  log_density, limit = _oracle(kind, parameters)
  points = limit * np.float32([-0.999, -0.5, -0.26, 0.0, 0.2, 0.7, 0.999])
  np.testing.assert_allclose(
    _log_density(_distribution(kind), parameters, points),
    log_density(points.astype(np.float64)),
    rtol=1e-3,
    atol=1e-3,
  )


@_each_density
def test_gradients_equal_finite_differences(kind, parameters):
  def log_density(parameters):
    return _oracle(kind, parameters)[0](np.float64(0.25))

  row = tf.constant([parameters], tf.float32)
  with tf.GradientTape() as tape:
    tape.watch(row)
    log_prob = _distribution(kind).log_prob(row, tf.constant([[0.25]]))
  expected = [
    (log_density(parameters + step) - log_density(parameters - step)) / 2e-5
    for step in 1e-5 * np.eye(2)
  ]
  np.testing.assert_allclose(tape.gradient(log_prob, row)[0], expected, rtol=2e-3, atol=1e-3)


@_each_density
def test_densities_integrate_to_one_and_have_the_std_and_entropy(kind, parameters):
  dist = _distribution(kind)
  points, width = _grid(_oracle(kind, parameters)[1])
  log_density = _log_density(dist, parameters, points)
  density = np.exp(log_density)
  assert abs((density * width).sum() - 1) < 1e-3
  mean = (points * density * width).sum()
  variance = ((points - mean) ** 2 * density * width).sum()
  row = tf.constant([parameters], tf.float32)
  np.testing.assert_allclose(dist.std(row), [np.sqrt(variance)], rtol=1e-2)
  np.testing.assert_allclose(dist.entropy(row), [-(density * log_density * width).sum()], atol=5e-3)


@pytest.mark.parametrize("kind", list(_PARAMETERS))
def test_divergences_equal_integrals(kind):
  dist = _distribution(kind)
  first, second = _PARAMETERS[kind][1:3]
  points, width = _grid(_oracle(kind, first)[1])
  log_p, log_q = (_log_density(dist, row, points) for row in (first, second))
  np.testing.assert_allclose(
    dist.kl(*tf.constant([[first], [second]], tf.float32)),
    [(np.exp(log_p) * (log_p - log_q) * width).sum()],
    rtol=3e-3,
  )


@_each_density
def test_samples_follow_the_density(kind, parameters):
  num_samples = 20_000
  samples = np.sort(
    drawing.sample(
      _distribution(kind), tf.constant([parameters] * num_samples, tf.float32)
    ).numpy()[:, 0]
  )
  log_density, limit = _oracle(kind, parameters)
  points, width = _grid(limit)
  cdf = np.interp(samples, points + width / 2, np.cumsum(np.exp(log_density(points)) * width))
  distance = np.abs(cdf - (np.arange(num_samples) + 0.5) / num_samples).max()
  assert distance < 1.95 / np.sqrt(num_samples)  # Kolmogorov-Smirnov, 0.1 %.


@pytest.mark.slow
@modes.eager_and_compiled
@pytest.mark.parametrize("kind", ["squashed_gaussian", "beta"])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_bounded_samples_have_finite_densities(prepare, kind, size):
  dist = _distribution(kind, (3,))
  parameters = tf.constant(size * drawing.parameters(dist, 0, rows=2000))
  if kind == "squashed_gaussian":  # Limits the log stds, the second half.
    mean, log_std = tf.split(parameters, 2, -1)
    parameters = tf.concat([mean, tf.clip_by_value(log_std, -10, 3)], -1)
  for action in (drawing.sample(dist, parameters, prepare=prepare), prepare(dist.mode)(parameters)):
    assert np.abs(action).max() < 1

    def log_prob_and_gradient(parameters, action):
      with tf.GradientTape() as tape:
        tape.watch(parameters)
        log_prob = dist.log_prob(parameters, action)
      return log_prob, tape.gradient(log_prob, parameters)

    for result in prepare(log_prob_and_gradient)(parameters, action):
      assert np.isfinite(result).all()
  np.testing.assert_array_equal(dist.saturation(action), 0)


def test_mode_of_the_beta_distribution_maximizes_the_density():
  points, _ = _grid(1)
  for parameters in _PARAMETERS["beta"][1:]:
    dist = _distribution("beta")
    best = points[_log_density(dist, parameters, points).argmax()]
    mode = dist.mode(tf.constant([parameters], tf.float32))
    np.testing.assert_allclose(mode, [[best]], atol=2e-3)


def test_mode_of_the_squashed_gaussian_is_its_median():
  dist = _distribution("squashed_gaussian", (2,))
  parameters = tf.constant(np.tile(drawing.parameters(dist, 0, 1), (5001, 1)))
  samples = drawing.sample(dist, parameters).numpy()
  np.testing.assert_allclose(dist.mode(parameters[:1])[0], np.median(samples, 0), atol=0.05)


def _initial_std(dist):
  parameters = dist.parameters(
    tf.constant(dist.initial_outputs[None]), tf.constant(dist.initial_free)
  )
  return dist.std(parameters).numpy()[0]


@pytest.mark.parametrize("state_dependent", [False, True])
@pytest.mark.parametrize(
  "kind, init_std, std",
  [
    ("gaussian", 0.6, 0.6),
    ("gaussian", 2.0, 2.0),
    ("squashed_gaussian", 0.05, 0.0499),
    ("squashed_gaussian", 0.6, 0.4722),
    ("beta", 1e-3, 1e-3),
    ("beta", 0.3, 0.3),
    ("beta", 0.6, 0.4775),
  ],
)
def test_new_policies_have_the_configured_std(kind, init_std, std, state_dependent):
  # 0.4722 is the std of tanh(0.6 x) for standard normal x, by integration. A
  # Beta distribution with a std of 0.6 would have its modes at the bounds.
  dist = _distribution(kind, (2,), init_std=init_std, state_dependent_std=state_dependent)
  np.testing.assert_allclose(_initial_std(dist), std, rtol=2e-3)
  num_free = 2 if kind != "beta" and not state_dependent else 0
  assert dist.initial_free.shape == (num_free,)
  assert dist.initial_outputs.shape == (dist.size - num_free,)


@pytest.mark.parametrize(
  "kind, activation", [("gaussian", np.tanh), ("squashed_gaussian", np.asarray)]
)
@pytest.mark.parametrize("state_dependent", [False, True])
def test_only_the_clipped_gaussian_has_a_mean_activation(kind, activation, state_dependent):
  dist = _distribution(kind, (2,), mean_activation="tanh", state_dependent_std=state_dependent)
  outputs = np.float32([[0.5, 2.0, 3.0, 4.0]])
  free = np.float32([] if state_dependent else [3.0, 4.0])
  expected = np.concatenate([activation(outputs[:, :2]), outputs[:, 2:]], -1)
  np.testing.assert_allclose(
    dist.parameters(tf.constant(outputs[:, : 4 if state_dependent else 2]), tf.constant(free)),
    expected,
    rtol=1e-6,
  )
