"""Gathered simulations equal one simulation of all environments."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents.distributed import gather_rollouts, padded_actor
from agents.environments import batch_env
from agents.simulation import in_graph_batch_env, simulate
from tests import toy
from tests.distributed import machines

pytestmark = pytest.mark.usefixtures("eagerly")
_NUM_ENVS = 4


class _NoisyActor:
  """Computes actions from observation, noise and step of the episode."""

  def initial_state(self, num_envs):
    return tf.zeros([num_envs, 1])

  def noise(self, step_counter, num_envs):
    return tf.random.stateless_uniform([num_envs, 1], tf.stack([step_counter, 0]))

  def act(self, observ, state, noise):
    action = tf.sin(tf.reduce_sum(observ, 1, keepdims=True)) + state / 10
    return action if noise is None else action + noise, state + 1


def _env(rows):
  constructors = [functools.partial(toy.Uneven, 5)] * _NUM_ENVS
  return in_graph_batch_env.InGraphBatchEnv(
    batch_env.BatchEnv(constructors[rows], seed=3, first=rows.start or 0)
  )


def _simulate(env, algorithm, carry, episodes_left):
  if episodes_left is None:
    return simulate.simulate(env, algorithm, carry, 9)
  simulation, _ = simulate.simulate_episodes(
    env, algorithm, carry, 20, explore=True, episodes_left=tf.constant(episodes_left)
  )
  return simulation


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("episodes_left", [None, [3, 1, 1, 2]])
def test_gathered_simulation_equals_simulation_on_one_machine(world_size, episodes_left):
  whole, algorithm = _env(slice(None)), _NoisyActor()
  carry = simulate.initial_carry(whole.batch_env.reset(), 5, algorithm.initial_state(_NUM_ENVS))
  expected = _simulate(whole, algorithm, carry, episodes_left)

  def simulate_share(communicator):
    rows = communicator.local_rows(_NUM_ENVS)
    env = _env(rows)
    env.batch_env.reset()
    local = carry._replace(observ=carry.observ[rows], state=carry.state[rows])
    simulation = _simulate(
      env,
      padded_actor.PaddedActor(algorithm, rows, _NUM_ENVS),
      local,
      episodes_left and episodes_left[rows],
    )
    return gather_rollouts.gather_simulations(
      communicator, simulation, carry, None if episodes_left else 9
    )

  for result in machines.run(
    [
      functools.partial(simulate_share, communicator)
      for communicator in machines.communicators(world_size)
    ]
  ):
    tf.nest.map_structure(np.testing.assert_array_equal, result.carry, expected.carry)
    # Observations and actions of waiting environments may differ.
    valid = expected.transitions.valid.numpy()
    for name, tensor in result.transitions._asdict().items():
      other = getattr(expected.transitions, name)
      rows = ... if name in ("valid", "final_observ") else valid
      np.testing.assert_array_equal(tensor.numpy()[rows], other.numpy()[rows], err_msg=name)
    assert set(result.seconds) == {"env", "exchange"}
