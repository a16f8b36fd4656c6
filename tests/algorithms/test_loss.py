"""The loss of a gradient step, term by term."""

import dataclasses

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import config as config_lib
from agents.algorithms import feed_forward_model, kl_penalty, minibatches
from agents.algorithms import loss as loss_lib
from agents.networks import distribution_for_space, feed_forward, observation_encoder
from tests.algorithms import reference
from tests.support import modes

_NETWORK = config_lib.Network(policy_layers=(3,), value_layers=(3,))
_PLAIN = config_lib.Algorithm(clip_ratio=None, value_coef=0.7, normalize_observ=False)
_ALL = dataclasses.replace(
  _PLAIN, clip_ratio=0.1, value_clip=0.2, entropy_coef=0.3, kl_penalty=2.0, kl_cutoff_coef=5.0
)


class _Setup:
  """A loss, its networks, and samples of six steps."""

  def __init__(self, config):
    rows = 6
    space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    self.value = feed_forward.feed_forward_value(_NETWORK, 1)
    self.distribution = distribution_for_space.make(space, _NETWORK)
    self.policy = feed_forward.Policy(self.distribution, _NETWORK, 0)
    model = feed_forward_model.FeedForward(
      observation_encoder.ObservationEncoder(space, None, 10.0),
      feed_forward_model.Networks(self.policy, self.value),
    )
    self.loss = loss_lib.PPOLoss(config, self.distribution, model)
    rng = np.random.default_rng(2)

    def normal(*shape):
      return tf.constant(rng.normal(size=shape), tf.float32)

    observ, action = normal(rows, 2), normal(rows, 2)
    self.parameters = self.policy(observ)
    old = self.parameters + 0.3 * normal(rows, 4)
    self.log_prob = self.distribution.log_prob(self.parameters, action)
    self.samples = loss_lib.Samples(
      observ,
      action,
      old,
      self.distribution.log_prob(old, action),
      normal(rows),
      normal(rows),
      normal(rows),
      tf.constant([0, 0, 2, 2, 2, 3]),
    )
    self.weight = tf.fill([rows], 1 / rows)
    # One derivative for each of four sequences.
    self.kl_gradient = tf.abs(normal(4)) if config.kl_cutoff_coef else None

  def __call__(self, samples=None, weight=None):
    kwargs = {} if self.kl_gradient is None else {"kl_gradient": self.kl_gradient}
    return self.loss(
      self.samples if samples is None else samples,
      self.weight if weight is None else weight,
      **kwargs,
    )


def _gaussian(parameters):
  return tuple(np.split(np.asarray(parameters, np.float64), 2, -1))


@pytest.mark.fast_variants(1)
@modes.eager_and_compiled
def test_loss_is_the_sum_of_its_terms(prepare):
  setup = _Setup(_ALL)
  loss, losses = prepare(setup.loss.__call__)(setup.samples, setup.weight, setup.kl_gradient)
  kl = reference.Gaussian.kl(_gaussian(setup.samples.policy), _gaussian(setup.parameters))
  np.testing.assert_allclose(
    losses["entropy"], reference.Gaussian.entropy(_gaussian(setup.parameters)).mean(), rtol=1e-5
  )
  np.testing.assert_allclose(
    loss,
    losses["policy_loss"]
    + 0.7 * losses["value_loss"]
    - 0.3 * losses["entropy"]
    + 2.0 * kl.mean()
    + (setup.kl_gradient.numpy()[setup.samples.sequence] * kl).sum(),
    rtol=1e-5,
  )


def test_bind_normalizes_advantages_and_adds_the_cutoff_to_the_loss():
  setup = _Setup(dataclasses.replace(_ALL, kl_target=1e-3))
  minibatch, loss, losses = setup.loss.bind(minibatches.Minibatch(setup.samples, setup.weight), 4)
  advantage = setup.samples.advantage.numpy()
  np.testing.assert_allclose(
    minibatch.samples.advantage,
    (advantage - advantage.mean()) / advantage.std(),
    rtol=1e-4,
    atol=1e-6,
  )
  kl = reference.Gaussian.kl(_gaussian(setup.samples.policy), _gaussian(setup.parameters))
  cutoff, kl_gradient = kl_penalty.cutoff(
    *kl_penalty.sum_by_sequence(
      tf.constant(kl, tf.float32), setup.samples.sequence, tf.fill([6], True), 4
    ),
    _ALL.kl_cutoff_factor * 1e-3,
    _ALL.kl_cutoff_coef,
  )
  assert list(losses) == setup.loss.minibatch_names
  np.testing.assert_allclose(losses["kl_cutoff"], cutoff, rtol=1e-4)
  np.testing.assert_allclose(
    loss(setup.samples, setup.weight)[0],
    setup.loss(setup.samples, setup.weight, kl_gradient=kl_gradient)[0],
    rtol=1e-4,
  )


def test_bind_changes_nothing_without_cutoff_and_normalization():
  setup = _Setup(dataclasses.replace(_PLAIN, normalize_advantage=False))
  assert setup.loss.bind(None, 4) == (None, setup.loss, {})
  assert setup.loss.minibatch_names == []


def test_penalty_uses_the_current_weight():
  setup = _Setup(_ALL)
  before, _ = setup()
  setup.loss.penalty.weight.assign(5.0)
  after, _ = setup()
  kl = setup.distribution.kl(setup.samples.policy, setup.parameters)
  np.testing.assert_allclose(after - before, 3 * tf.reduce_mean(kl), rtol=1e-4)


@pytest.mark.parametrize(
  "config",
  [_PLAIN, _ALL, dataclasses.replace(_PLAIN, clip_ratio=0.2)],
  ids=["plain", "all", "clipped"],
)
def test_names_equal_the_keys_of_the_losses(config):
  setup = _Setup(config)
  _, losses = setup()
  assert list(losses) == setup.loss.names
  assert ("clip_fraction" in losses) == (config.clip_ratio is not None)


@pytest.mark.parametrize("config", [_PLAIN, _ALL], ids=["plain", "all"])
def test_losses_of_chunks_add_up(config):
  setup = _Setup(config)

  def part(rows):
    return setup(loss_lib.Samples(*[x[rows] for x in setup.samples]), setup.weight[rows])

  parts = [part(rows) for rows in (slice(0, 2), slice(2, 3), slice(3, 6))]
  summed = tf.nest.map_structure(lambda *xs: sum(x.numpy() for x in xs), *parts)
  whole = tf.nest.map_structure(lambda x: x.numpy(), setup())
  for got, wanted in zip(tf.nest.flatten(summed), tf.nest.flatten(whole)):
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


@pytest.mark.parametrize("config", [_PLAIN, _ALL], ids=["plain", "all"])
def test_steps_of_weight_zero_change_nothing(config):
  setup = _Setup(config)
  chosen = np.array([1, 0, 1, 1, 0, 1], np.float32)
  rows = np.flatnonzero(chosen)
  expected = setup(
    tf.nest.map_structure(lambda x: tf.gather(x, rows), setup.samples), tf.fill([4], 0.25)
  )
  masked = setup(None, tf.constant(chosen / 4))
  for got, wanted in zip(tf.nest.flatten(masked), tf.nest.flatten(expected)):
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize(
  "ratio, advantage, surrogate, has_gradient",
  [
    (1.0, 3.0, 3.0, True),
    (1.0, -3.0, -3.0, True),
    (1.05, 3.0, 3.15, True),
    (0.95, -3.0, -2.85, True),
    (1.5, 3.0, 3.3, False),
    (0.5, -3.0, -2.7, False),  # Clipped.
    (1.5, -3.0, -4.5, True),
    (0.5, 3.0, 1.5, True),
  ],
)  # Not clipped.
def test_ratio_is_clipped_only_if_clipping_lowers_the_surrogate(
  ratio, advantage, surrogate, has_gradient
):
  setup = _Setup(dataclasses.replace(_PLAIN, clip_ratio=0.1, value_coef=0.0))
  samples = setup.samples._replace(
    log_prob=setup.log_prob - float(np.log(ratio)), advantage=tf.fill([6], advantage)
  )
  with tf.GradientTape() as tape:
    loss, losses = setup(samples)
  np.testing.assert_allclose(losses["policy_loss"], -surrogate, rtol=1e-5)
  np.testing.assert_allclose(losses["clip_fraction"], float(abs(ratio - 1) > 0.1), rtol=1e-6)
  gradients = tape.gradient(loss, setup.policy.trainable_variables)
  assert bool(tf.linalg.global_norm(gradients) > 0) == has_gradient


def test_surrogate_without_clipping_has_no_bound():
  setup = _Setup(_PLAIN)
  samples = setup.samples._replace(
    log_prob=setup.log_prob - float(np.log(7.0)), advantage=tf.fill([6], 2.0)
  )
  np.testing.assert_allclose(setup(samples)[1]["policy_loss"], -14, rtol=1e-5)


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize(
  "change, error, loss, has_gradient",
  [
    # Change from the old to the new value, and target minus new value.
    (0.1, 3.0, 9.0, True),
    (-0.1, 3.0, 9.0, True),
    (0.5, 3.0, 3.3**2, False),
    (-0.5, -3.0, 3.3**2, False),
    (0.5, -3.0, 9.0, True),
    (-0.5, 3.0, 9.0, True),
  ],
)
def test_value_is_clipped_only_if_clipping_raises_the_loss(change, error, loss, has_gradient):
  setup = _Setup(dataclasses.replace(_PLAIN, value_clip=0.2))
  value = setup.value(setup.samples.observ)[:, 0]
  samples = setup.samples._replace(value=value - change, value_target=value + error)
  with tf.GradientTape() as tape:
    _, losses = setup(samples)
  np.testing.assert_allclose(losses["value_loss"], loss, rtol=1e-5)
  gradients = tape.gradient(losses["value_loss"], setup.value.trainable_variables)
  assert bool(tf.linalg.global_norm(gradients) > 0) == has_gradient


def test_value_without_clipping_has_no_bound():
  setup = _Setup(_PLAIN)
  value = setup.value(setup.samples.observ)[:, 0]
  samples = setup.samples._replace(value=value - 9, value_target=value + 3)
  np.testing.assert_allclose(setup(samples)[1]["value_loss"], 9, rtol=1e-5)
