"""Recurrent policies learn from whole episodes."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents import build
from agents import config as config_lib
from agents.environments import batch_env
from agents.simulation import in_graph_batch_env, rollout_to_batch, simulate
from tests import toy

_LENGTHS = 2, 5, 3
_MAX_LENGTH = 6
_CONFIG = config_lib.Config().override(
  {
    "num_envs": 3,
    "network.recurrent": "gru",
    "network.recurrent_units": 5,
    "algorithm.segment_length": None,
    "algorithm.update_every": 5,
    "algorithm.minibatch_size": None,
    "algorithm.update_epochs": 2,
  }
)


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_learner_recomputes_the_policy_that_acted():
  envs = [functools.partial(toy.Counter, length, length == 5) for length in _LENGTHS]
  with batch_env.BatchEnv(envs) as batch:
    algorithm = build.algorithm(_CONFIG, batch.observation_space, batch.action_space)
    rng = np.random.default_rng(0)
    for variable in algorithm.weights:
      variable.assign(0.5 * rng.normal(size=variable.shape))
    spec = rollout_to_batch.episodes(3, 5, _MAX_LENGTH, in_place=True)
    assert (spec.quota, spec.steps) == ((2, 2, 1), 12)
    carry = simulate.initial_carry(batch.reset(), state=algorithm.initial_state(3))
    for _ in range(2):
      played, left = simulate.simulate_episodes(
        in_graph_batch_env.InGraphBatchEnv(batch),
        algorithm,
        carry,
        spec.steps,
        True,
        tf.constant(spec.quota),
      )
      assert not left.numpy().any()
      transitions = played.transitions
      valid = transitions.valid.numpy()
      num_steps = len(valid)
      assert valid.sum(0).tolist() == [4, 10, 3] and num_steps == 10
      experience = spec.flatten(transitions, carry.state, played.carry.observ)
      rows = experience.valid.numpy()[: 3 * 12].reshape(3, 12)
      np.testing.assert_array_equal(rows[:, :num_steps], valid.T)
      assert not rows[:, num_steps:].any() and experience.final_observ.shape[0] >= 5

      noise = tf.stack([algorithm.noise(carry.step_counter + step, 3) for step in range(num_steps)])
      parameters = algorithm.model.policy(experience)[: 3 * 12]
      by_env = tf.reshape(parameters, [3, 12, -1])[:, :num_steps]
      recomputed = algorithm.distribution.sample(
        tf.boolean_mask(by_env, valid.T), tf.boolean_mask(tf.transpose(noise, [1, 0, 2]), valid.T)
      )
      acted = tf.boolean_mask(tf.transpose(transitions.action, [1, 0, 2]), valid.T)
      np.testing.assert_allclose(recomputed, acted, atol=1e-5)

      # The values of true successors continue the recurrent state.
      values, successors = algorithm.values(experience)
      values, successors = (
        np.reshape(array[: 3 * 12], [3, 12])[:, :num_steps] for array in (values, successors)
      )
      continues = valid.T & ~(transitions.terminated | transitions.truncated).numpy().T
      np.testing.assert_allclose(
        successors[:, :-1][continues[:, :-1]], values[:, 1:][continues[:, :-1]], atol=1e-5
      )
      metrics, _ = algorithm.learn(experience, carry.step_counter, tf.constant(0.0))
      assert all(np.isfinite(metrics[name]) for name in metrics)
      carry = played.carry
