"""Forbidden actions have probability zero."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import build, spaces
from agents import config as config_lib
from agents.networks import action_mask, distribution_for_space
from tests.support import modes

_BINARY = gymnasium.spaces.MultiBinary


def _space(mask):
  return gymnasium.spaces.Dict({"state": gymnasium.spaces.Box(-1, 1, (2,)), "mask": mask})


def _observ(space, masks):
  """Returns observations with masks, as the graph receives them."""
  observ = np.zeros(len(masks), spaces.dtype(space)[0])
  observ["mask"] = masks
  return tf.constant(spaces.as_bytes(observ))


@modes.compiled_slowly
@pytest.mark.fast_variants(4)
@pytest.mark.parametrize(
  "kind",
  [
    _BINARY(4),
    gymnasium.spaces.Box(0, 1, (4,), np.int8),
    gymnasium.spaces.Box(0, 1, (4,), np.uint8),
    gymnasium.spaces.Box(0, 1, (4,), np.bool_),
  ],
)
def test_probabilities_are_those_of_the_allowed_actions(prepare, kind):
  """Compares with the softmax over allowed actions."""
  rng = np.random.default_rng(0)
  masks = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1]])
  space, action = _space(kind), gymnasium.spaces.Discrete(4, start=2)
  logits = rng.normal(size=masks.shape).astype(np.float32)
  mask = action_mask.ActionMask(space, action, "mask")
  masked = prepare(mask)(tf.constant(logits), _observ(space, masks))
  dist = distribution_for_space.make(action)
  weight = np.where(masks, np.exp(logits), 0)
  expected = weight / weight.sum(-1, keepdims=True)
  for index in range(4):
    actual = tf.exp(dist.log_prob(masked, tf.fill([3], tf.constant(index, tf.int64))))
    np.testing.assert_allclose(actual, expected[:, index], rtol=1e-5)
  logs = np.log(np.where(masks, expected, 1))
  np.testing.assert_allclose(dist.entropy(masked), -(expected * logs).sum(-1), rtol=1e-5, atol=1e-6)
  other = prepare(mask)(tf.constant(logits[::-1].copy()), _observ(space, masks))
  assert np.isfinite(dist.kl(masked, other)).all() and (dist.kl(masked, other) >= 0).numpy().all()
  noise = tf.constant(rng.gumbel(size=(1000, 3, 4)), tf.float32)
  samples = np.stack([dist.sample(masked, each) for each in noise])
  assert masks[np.arange(3), samples].all()
  assert masks[np.arange(3), dist.mode(masked)].all()


def test_each_choice_has_its_own_part_of_the_mask():
  space, action = _space(_BINARY(5)), gymnasium.spaces.MultiDiscrete([2, 3])
  mask = action_mask.ActionMask(space, action, "mask")
  dist = distribution_for_space.make(action)
  masked = mask(tf.zeros([1, dist.size]), _observ(space, [[0, 1, 1, 0, 1]]))
  probabilities = {
    (first, second): float(
      tf.exp(dist.log_prob(masked, tf.constant([[first, second]], tf.int64)))[0]
    )
    for first in range(2)
    for second in range(3)
  }
  expected = {(1, 0): 0.5, (1, 2): 0.5}
  assert probabilities == pytest.approx(dict.fromkeys(probabilities, 0) | expected)


def test_gradients_of_forbidden_logits_are_zero():
  space, action = _space(_BINARY(3)), gymnasium.spaces.Discrete(3)
  mask, dist = action_mask.ActionMask(space, action, "mask"), distribution_for_space.make(action)
  logits = tf.Variable([[0.5, 1.0, -1.0]])
  with tf.GradientTape() as tape:
    masked = mask(logits, _observ(space, [[1, 0, 1]]))
    loss = dist.log_prob(masked, tf.constant([2], tf.int64)) + dist.entropy(masked)
  gradient = tape.gradient(loss, logits).numpy()[0]
  assert gradient[1] == 0 and np.isfinite(gradient).all() and gradient[0] != 0


@pytest.mark.parametrize(
  "space, action, message",
  [
    (_space(_BINARY(3)), gymnasium.spaces.Discrete(4), r"with shape \(4,\)"),
    (_space(gymnasium.spaces.Box(0, 1, (4,))), gymnasium.spaces.Discrete(4), "of integers"),
    (_space(_space(_BINARY(4))), gymnasium.spaces.Discrete(4), "must be one MultiBinary"),
    (_space(_BINARY(4)), gymnasium.spaces.Box(-1, 1, (4,)), "needs Discrete or"),
    (_BINARY(4), gymnasium.spaces.Discrete(4), "no part 'mask'"),
  ],
)
def test_unsuitable_masks_are_errors(space, action, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    action_mask.ActionMask(space, action, "mask")


@pytest.mark.parametrize(
  "changes",
  [
    {},
    {"network.frame_stack": 3},
    pytest.param({"network.recurrent": "gru"}, marks=pytest.mark.slow),
    {"network.policy_observ": ["state"]},
  ],
)
@pytest.mark.usefixtures("eagerly")
def test_a_policy_takes_only_allowed_actions(changes):
  config = config_lib.Config().override(
    {"network.action_mask": "mask", "network.init_output_factor": 1.0, **changes}
  )
  space, action = _space(_BINARY(6)), gymnasium.spaces.Discrete(6)
  algorithm = build.algorithm(config, space, action)
  rng, count = np.random.default_rng(0), 50
  state = algorithm.initial_state(count)
  for step in range(3):
    masks = rng.integers(0, 2, (count, 6))
    masks[:, step] = 1
    noise = algorithm.noise(tf.constant(step, tf.int64), count)
    for chosen in (None, noise):
      actions, following = algorithm.act(_observ(space, masks), state, chosen)
      assert masks[np.arange(count), actions].all()
    state = following
