"""Steps that failed are neither learned from nor scored."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.data import failure_budget
from agents.simulation import evaluator
from agents.simulation import in_graph_batch_env
from agents.simulation import rollout
from agents.simulation import simulate
from tests.environments import faulty_envs

_SIZE, _STEPS, _SEED = 4, 30, 5


class _Still:
  """Takes the same action all the time."""

  def noise(self, clock, amount):
    return tf.zeros([amount, 1])

  def initial_state(self, amount):
    return ()

  def act(self, observ, state, noise):
    return tf.zeros_like(observ), state


@pytest.fixture(params=["raise", "observ", "reward"])
def env(request):
  with batch_env.BatchEnv(
      [functools.partial(faulty_envs.Breaks, request.param)] * _SIZE, seed=_SEED,
      incidents=failure_budget.FailureBudget(1000)) as batch:
    yield in_graph_batch_env.InGraphBatchEnv(batch)


def test_sequences_end_before_what_failed(env):
  carry = simulate.initial_carry(env.batch_env.reset())
  played = tf.function(
      lambda carry: simulate.simulate(env, _Still(), carry, _STEPS, True),
      autograph=False)(carry)
  broken = [one for incident in env.batch_env.incidents.take()
            for one in incident.broken]
  transitions = tf.nest.map_structure(np.array, played.transitions)
  failed = ~transitions.valid
  assert failed.sum(0).tolist() == [
      sum(x.environment == index for x in broken) for index in range(_SIZE)]
  assert failed.sum() >= 8
  assert not transitions.reward[failed].any()
  assert not (transitions.terminated | transitions.truncated)[failed].any()
  assert all(np.isfinite(x).all() for x in transitions)

  memory = rollout.segments(_SIZE, _STEPS).flatten(played.transitions)
  memory = tf.nest.map_structure(np.array, memory)
  assert memory.valid.sum() == _SIZE * _STEPS - failed.sum()
  np.testing.assert_array_equal(
      memory.reward[memory.valid],
      transitions.reward.T[transitions.valid.T])
  # Where the step before stands for the rest of its episode, it leads to where
  # the failure happened.
  row = 0
  for index in range(_SIZE):
    for step in range(_STEPS):
      if failed[step, index]:
        if step and not failed[step - 1, index]:
          assert memory.last[row - 1]
          if not (memory.terminated | memory.truncated)[row - 1]:
            np.testing.assert_array_equal(
                memory.final_observ[memory.sequence[row - 1]],
                transitions.observ[step, index])
      else:
        row += 1


def test_an_episode_that_broke_off_counts_as_played_but_not_as_score(env):
  amount = 5 * _SIZE
  scored = evaluator.Evaluator(env, _Still(), explore=False).play(amount)
  seeds = [episodes.episode_seed(_SEED, index, number)
           for index in range(_SIZE) for number in range(5)]
  def breaks(seed):
    return 0 < faulty_envs.Breaks.breaks_at(seed) <= faulty_envs.Breaks.lasts(seed, 7)
  assert any(map(breaks, seeds))
  assert sorted(episode.seed for episode in scored) == sorted(
      seed for seed in seeds if not breaks(seed))
  told = [one.seed for incident in env.batch_env.incidents.take()
          for one in incident.broken]
  assert sorted(told) == sorted(filter(breaks, seeds))
