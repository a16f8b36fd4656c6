"""The learner ignores failed steps, and failed episodes have no score."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episode_data, failure_budget
from agents.simulation import evaluator, in_graph_batch_env, rollout_to_batch, simulate
from tests.environments import faulty_envs

_SIZE, _STEPS, _SEED = 4, 30, 5


class _ZeroActor:
  """Returns actions of zero."""

  def noise(self, step_counter, num_envs):
    return tf.zeros([num_envs, 1])

  def initial_state(self, num_envs):
    return ()

  def act(self, observ, state, noise):
    return tf.zeros_like(observ), state


@pytest.fixture(params=["raise", "observ", "reward"])
def env(request):
  """Returns a batch that tolerates one kind of failure."""
  with batch_env.BatchEnv(
    [functools.partial(faulty_envs.Breaks, request.param)] * _SIZE,
    seed=_SEED,
    failure_budget=failure_budget.FailureBudget(1000),
  ) as batch:
    yield in_graph_batch_env.InGraphBatchEnv(batch)


def test_sequences_end_before_failed_steps(env):
  carry = simulate.initial_carry(env.batch_env.reset())
  played = tf.function(
    lambda carry: simulate.simulate(env, _ZeroActor(), carry, _STEPS), autograph=False
  )(carry)
  failed_episodes = [
    episode for failure in env.batch_env.failure_budget.drain() for episode in failure.episodes
  ]
  transitions = tf.nest.map_structure(np.array, played.transitions)
  failed = ~transitions.valid
  assert failed.sum(0).tolist() == [
    sum(episode.environment == index for episode in failed_episodes) for index in range(_SIZE)
  ]
  assert failed.sum() >= 8
  assert not transitions.reward[failed].any()
  assert not (transitions.terminated | transitions.truncated)[failed].any()
  assert all(np.isfinite(x).all() for x in transitions)

  batch = rollout_to_batch.segments(_SIZE, _STEPS).flatten(played.transitions)
  batch = tf.nest.map_structure(np.array, batch)
  assert batch.valid.sum() == _SIZE * _STEPS - failed.sum()
  np.testing.assert_array_equal(
    batch.reward[batch.valid], transitions.reward.T[transitions.valid.T]
  )
  # A sequence ends with the step before a failed step. The successor of this
  # last step is the observation before the failed step.
  row = 0
  for index in range(_SIZE):
    for step in range(_STEPS):
      if failed[step, index]:
        if step and not failed[step - 1, index]:
          assert batch.last[row - 1]
          if not (batch.terminated | batch.truncated)[row - 1]:
            np.testing.assert_array_equal(
              batch.final_observ[batch.sequence[row - 1]], transitions.observ[step, index]
            )
      else:
        row += 1


def test_failed_episode_counts_as_played_but_has_no_score(env):
  finished = evaluator.Evaluator(env, _ZeroActor(), explore=False).play(5 * _SIZE)
  seeds = [
    episode_data.episode_seed(_SEED, index, number) for index in range(_SIZE) for number in range(5)
  ]

  def fails(seed):
    return 0 < faulty_envs.Breaks.breaks_at(seed) <= (faulty_envs.Breaks.episode_length(seed, 7))

  assert any(map(fails, seeds))
  assert sorted(episode.seed for episode in finished) == sorted(
    seed for seed in seeds if not fails(seed)
  )
  failed = [
    episode.seed for failure in env.batch_env.failure_budget.drain() for episode in failure.episodes
  ]
  assert sorted(failed) == sorted(filter(fails, seeds))
