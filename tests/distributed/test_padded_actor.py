"""Actions of one machine are bit-equal to actions of the complete batch."""

import numpy as np
import pytest
import tensorflow as tf

from agents import build
from agents.distributed import padded_actor
from tests import toy
from tests.distributed import machines

_NUM_ENVS = 7


@pytest.fixture(scope="module")
def algorithm():
  env = toy.Target()
  return build.algorithm(
    machines.CONFIG.override(
      {"network.policy_layers": [64, 64], "network.recurrent": "gru", "network.recurrent_units": 5}
    ),
    env.observation_space,
    env.action_space,
  )


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("rows", [slice(0, 3), slice(3, 7), slice(6, 7)])
@pytest.mark.parametrize("explore", [False, True])
def test_actions_and_states_are_bit_equal_to_the_complete_batch(rows, explore, algorithm):
  padded = padded_actor.PaddedActor(algorithm, rows, _NUM_ENVS)
  rng = np.random.default_rng(0)
  observ = tf.constant(rng.uniform(-1, 1, [_NUM_ENVS, 1]), tf.float32)
  state = tf.nest.map_structure(
    lambda tensor: tf.constant(rng.normal(size=tensor.shape), tensor.dtype),
    algorithm.initial_state(_NUM_ENVS),
  )
  counter = tf.constant(3, tf.int64)
  noise = algorithm.noise(counter, _NUM_ENVS) if explore else None
  local_noise = padded.noise(counter, rows.stop - rows.start) if explore else None
  if explore:
    np.testing.assert_array_equal(local_noise, noise[rows])
  expected = tf.function(algorithm.act)(observ, state, noise)
  actual = tf.function(padded.act)(
    observ[rows], tf.nest.map_structure(lambda tensor: tensor[rows], state), local_noise
  )
  tf.nest.map_structure(
    lambda one, other: np.testing.assert_array_equal(one, other[rows]), actual, expected
  )


def test_initial_state_has_only_the_rows_of_this_machine(algorithm):
  padded = padded_actor.PaddedActor(algorithm, slice(3, 7), _NUM_ENVS)
  for tensor in tf.nest.flatten(padded.initial_state(4)):
    assert tensor.shape[0] == 4 and not np.any(tensor)
