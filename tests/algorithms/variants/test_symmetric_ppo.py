"""PPO with symmetry learns from mirror images in every second epoch."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from agents import build
from agents import config as config_lib
from agents.algorithms import loss as loss_lib
from agents.algorithms.variants import symmetric_ppo
from agents.environments.making import make
from agents.robots import mirror
from tests.algorithms import test_ppo

_OBSERV = mirror.Mirror(np.array([1, 0]), np.array([1.0, -1.0]))
_ACTION = mirror.Mirror(np.array([1, 0]), np.array([-1.0, -1.0]))
_CONFIG = dataclasses.replace(test_ppo._MODERN, recompute_advantages=False)


def _algorithm(symmetric, **changes):
  plain = test_ppo._algorithm(dataclasses.replace(_CONFIG, **changes))
  if not symmetric:
    return plain
  return symmetric_ppo.SymmetricPPO(
    plain.config, test_ppo._OBSERV, plain.model._networks, 11, observ=_OBSERV, action=_ACTION
  )


@pytest.mark.slow
def test_first_epoch_equals_that_of_ppo():
  transitions = test_ppo._transitions(0)
  states = []
  for symmetric in (False, True):
    algorithm = _algorithm(symmetric, update_epochs=1)
    test_ppo._learn(algorithm, transitions)
    states.append(test_ppo._state(algorithm))
  for name, array in states[0].items():
    np.testing.assert_array_equal(array, states[1][name], name)


@pytest.mark.slow
def test_second_epoch_equals_ppo_on_mirror_images():
  batch = test_ppo._batch_of(test_ppo._transitions(0))
  states = []
  for symmetric in (False, True):
    algorithm = _algorithm(symmetric)
    samples, _, state = algorithm.prepare(batch, tf.constant(0.5))
    if not symmetric:
      samples = _naive_images(samples)
    algorithm.epoch(batch, samples, tf.constant(0, tf.int64), tf.constant(1), state)
    states.append(test_ppo._state(algorithm))
  for name, array in states[0].items():
    np.testing.assert_allclose(array, states[1][name], atol=1e-6, err_msg=name)


def _naive_images(samples: loss_lib.Samples) -> loss_lib.Samples:
  """Mirrors samples one by one."""
  observ, action, policy = (
    np.array(getattr(samples, name)) for name in ("observ", "action", "policy")
  )
  for row in range(len(observ)):
    observ[row] = observ[row][1], -observ[row][0]
    action[row] = -action[row][1], -action[row][0]
    policy[row] = -policy[row][1], -policy[row][0], policy[row][3], policy[row][2]
  return samples._replace(
    observ=tf.constant(observ), action=tf.constant(action), policy=tf.constant(policy)
  )


def test_bytes_of_nested_observations_are_mirrored():
  algorithm = _algorithm(True)
  observ = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
  samples = loss_lib.Samples(
    tf.constant(observ.view(np.uint8).reshape(5, 8)),
    tf.zeros([5, 2]),
    tf.zeros([5, 4]),
    *[tf.zeros([5])] * 5,
  )
  images = np.array(algorithm._images(samples).observ)
  np.testing.assert_array_equal(images.view(np.float32), _OBSERV(observ).astype(np.float32))


@pytest.mark.parametrize("env_id", ["Ant-v5", "robots/go1-v0"])
def test_setting_selects_the_algorithm(env_id):
  config = config_lib.Config().override({"env.id": env_id, "algorithm.symmetry": True})
  build.check(config)
  env = make.MakeEnv(config.env)()
  algorithm = build.algorithm(config, env.observation_space, env.action_space)
  assert isinstance(algorithm, symmetric_ppo.SymmetricPPO)
  assert len(algorithm._action_mirror.order) == env.action_space.shape[0]


def test_unsupported_settings_are_user_errors():
  with pytest.raises(config_lib.ConfigError, match="`algorithm.symmetry` needs"):
    config_lib.Config().override({"algorithm.symmetry": True, "network.frame_stack": 2})
  config = config_lib.Config().override({"env.id": "HalfCheetah-v5", "algorithm.symmetry": True})
  with pytest.raises(config_lib.ConfigError, match="no known mirror image"):
    build.check(config)
