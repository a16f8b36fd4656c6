"""The loop in the graph equals steps outside of the graph."""

import numpy as np
import pytest
import tensorflow as tf

from agents import types
from agents.environments import batch_env
from agents.simulation import in_graph_batch_env, simulate
from tests import toy
from tests.simulation import policies
from tests.support import modes

_both_modes = pytest.mark.parametrize("eager", [True, False], ids=["eager", "graph"])


class _CountingActor:
  """Returns the action 0.1 * step_counter + index of the environment."""

  def noise(self, step_counter, num_envs):
    return (0.1 * tf.cast(step_counter, tf.float32) + tf.range(float(num_envs)))[:, None]

  def initial_state(self, num_envs):
    return ()

  def act(self, observ, state, noise):
    return noise, state


class _RememberingActor(_CountingActor):
  """The state of the policy is the number of steps since its last reset."""

  def act(self, observ, state, noise):
    return noise, state + 1


def _counters(*lengths, truncates=False):
  return batch_env.BatchEnv(
    [lambda length=length: toy.Counter(length, truncates) for length in lengths], seed=3
  )


def _targets(discrete):
  return batch_env.BatchEnv(
    [lambda length=length: toy.Target(discrete, length) for length in (2, 3, 5)], seed=3
  )


def _start(batch):
  return simulate.initial_carry(batch.reset())


def _player(batch, actor, num_steps, explore=True):
  """Returns a function that maps a carry to the arrays of a simulation."""
  env = in_graph_batch_env.InGraphBatchEnv(batch)

  @tf.function
  def play(carry):
    if explore:
      return simulate.simulate(env, actor, carry, num_steps)
    left = tf.fill([len(env)], 99)  # More episodes than the steps contain.
    return simulate.simulate_episodes(env, actor, carry, num_steps, False, left)[0]

  return lambda carry: tf.nest.map_structure(lambda tensor: tensor.numpy(), play(carry))


def _play(batch, actor, carry, num_steps, explore=True, eager=False):
  with modes.functions_run_eagerly(eager):
    return _player(batch, actor, num_steps, explore)(carry)


def _ended(played):
  return played.transitions.terminated | played.transitions.truncated


def _take_finished(batch):
  return [(episode.score, episode.length) for episode in batch.take_finished()]


# Two environments take seven steps; their episodes have two and three steps.
_NO, _YES = False, True
_ENDED = [[_NO, _YES, _NO, _YES, _NO, _YES, _NO], [_NO, _NO, _YES, _NO, _NO, _YES, _NO]]
_LENGTHS = [[1, 2, 1, 2, 1, 2, 1], [1, 2, 3, 1, 2, 3, 1]]


@_both_modes
def test_scores_and_lengths_start_anew_in_each_episode(eager):
  with _counters(2, 3) as batch:  # Rewards are 1, 2, 3, ...
    played = _play(batch, _CountingActor(), _start(batch), 7, eager=eager)
    running = batch.snapshot()
  np.testing.assert_array_equal(_ended(played).T, _ENDED)
  np.testing.assert_array_equal(played.transitions.reward.T, _LENGTHS)
  assert _take_finished(batch) == [(3, 2), (6, 3), (3, 2), (3, 2), (6, 3)]
  np.testing.assert_array_equal(running.score, [1, 1])
  np.testing.assert_array_equal(running.length, [1, 1])
  assert played.carry.step_counter == 7


@pytest.mark.parametrize("truncates", [False, True])
def test_termination_and_truncation_are_distinguished(truncates):
  with _counters(2, 3, truncates=truncates) as batch:
    played = _play(batch, _CountingActor(), _start(batch), 7)
  transitions = played.transitions
  ended, never = transitions.terminated, transitions.truncated
  if truncates:
    ended, never = never, ended
  np.testing.assert_array_equal(ended.T, _ENDED)
  assert ended.sum() == 5 and not never.any()


def test_next_observ_is_the_successor_and_never_a_reset():
  with _counters(2, 3) as batch:
    played = _play(batch, _CountingActor(), _start(batch), 7)
  # Observations are [seed, step].
  observ = played.transitions.observ
  next_observ = played.transitions.next_observ
  np.testing.assert_array_equal(next_observ[..., 1].T, _LENGTHS)
  np.testing.assert_array_equal(next_observ[..., 0], observ[..., 0])
  ended = _ended(played)[:-1]
  np.testing.assert_array_equal(observ[1:][~ended], next_observ[:-1][~ended])
  np.testing.assert_array_equal(observ[1:][ended][:, 1], 0)
  assert (observ[1:][ended][:, 0] != next_observ[:-1][ended][:, 0]).all()


@_both_modes
def test_two_consecutive_simulations_equal_one_long_simulation(eager):
  with _counters(2, 3, 5) as batch:
    complete = _play(batch, _CountingActor(), _start(batch), 7, eager=eager)
    finished = batch.take_finished()
  with _counters(2, 3, 5) as batch:
    first = _play(batch, _CountingActor(), _start(batch), 4, eager=eager)
    carry = tf.nest.map_structure(tf.constant, first.carry)
    second = _play(batch, _CountingActor(), carry, 3, eager=eager)
  assert first.transitions.reward.shape == (4, 3)
  assert second.transitions.reward.shape == (3, 3)
  tf.nest.map_structure(np.testing.assert_array_equal, second.carry, complete.carry)
  tf.nest.map_structure(
    lambda *parts: np.testing.assert_array_equal(np.concatenate(parts[:2]), parts[2]),
    first.transitions,
    second.transitions,
    complete.transitions,
  )
  assert batch.take_finished() == finished and len(finished) == 3 + 2 + 1


def test_step_counter_continues_from_its_initial_value():
  with _counters(5) as batch:
    carry = simulate.initial_carry(batch.reset(), step_counter=20)
    played = _play(batch, _CountingActor(), carry, 3)
  np.testing.assert_allclose(played.transitions.action[:, 0, 0], [2.0, 2.1, 2.2], rtol=1e-6)
  assert played.carry.step_counter == 23


@pytest.mark.fast_variants(3)
@_both_modes
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("explore", [False, True])
def test_simulation_equals_steps_outside_of_the_graph(discrete, explore, eager):
  with _targets(discrete) as batch:
    actor = policies.make(batch)
    played = _play(batch, actor, _start(batch), 8, explore, eager)
    finished = _take_finished(batch)
  with _targets(discrete) as batch:
    observ = batch.reset()
    expected_finished, score, length = [], np.zeros(3, np.float32), [0] * 3
    for time in range(8):
      action, _ = actor.act(
        tf.constant(observ),
        types.NOTHING,
        actor.noise(tf.constant(time, tf.int64), 3) if explore else None,
      )
      action = action.numpy()
      step = batch.step(action)
      for name, expected in (
        ("observ", observ),
        ("action", action),
        ("reward", step.reward),
        ("terminated", step.terminated),
        ("truncated", step.truncated),
        ("next_observ", step.next_observ),
        ("valid", [True] * 3),
      ):
        np.testing.assert_allclose(
          getattr(played.transitions, name)[time], expected, rtol=1e-5, atol=1e-6, err_msg=name
        )
      observ = step.observ
      score += step.reward
      for index, ended in enumerate(step.terminated | step.truncated):
        length[index] += 1
        if ended:
          expected_finished.append((score[index], length[index]))
          score[index], length[index] = 0, 0
    np.testing.assert_array_equal(played.carry.observ, observ)
  np.testing.assert_allclose(finished, expected_finished, rtol=1e-5)
  assert _ended(played).sum() == len(finished) == 4 + 2 + 1


@pytest.mark.parametrize("discrete", [pytest.param(False, marks=pytest.mark.slow), True])
def test_step_counter_affects_sampled_actions_only(discrete):
  def actions(explore):
    with _targets(discrete) as batch:
      play = _player(batch, policies.make(batch), 8, explore)
      return [
        play(simulate.initial_carry(batch.reset(), step_counter)).transitions.action
        for step_counter in (0, 1000)
      ]

  mode, later_mode = actions(explore=False)
  assert len(np.unique(mode)) > 1
  np.testing.assert_array_equal(mode, later_mode)
  sample, later_sample = actions(explore=True)
  assert (sample != later_sample).any()


def test_transitions_contain_sampled_actions_and_environments_clip_them():
  with _counters(100) as batch:  # Actions in [-1, 1] map to [-2, 2].
    carry = simulate.initial_carry(batch.reset(), step_counter=5)
    received, sampled = [], []
    play = _player(batch, _CountingActor(), 1)
    for _ in range(8):
      played = play(carry)
      carry = tf.nest.map_structure(tf.constant, played.carry)
      sampled.append(played.transitions.action.item())
      received.append(batch.get("last_action")[0].item())
  np.testing.assert_allclose(sampled, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2], rtol=1e-6)
  np.testing.assert_allclose(received, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("explore", [False, True])
def test_simulation_does_not_change_variables(explore):
  with _targets(discrete=False) as batch:
    actor = policies.make(batch)
    before = {name: np.array(variable) for name, variable in actor.variables().items()}
    _play(batch, actor, _start(batch), 8, explore)
  for name, variable in actor.variables().items():
    np.testing.assert_array_equal(variable, before[name], err_msg=name)


def test_shapes_are_static_while_tracing():
  with _counters(2, 3) as batch:
    env, carry = in_graph_batch_env.InGraphBatchEnv(batch), _start(batch)
    traced = []

    @tf.function
    def play(carry):
      played = simulate.simulate(env, _CountingActor(), carry, 4)
      # The number of ended episodes is dynamic.
      assert played.transitions.final_observ.shape.as_list() == [None, 2]
      played = played._replace(transitions=played.transitions._replace(final_observ=()))
      traced.append(
        tf.nest.map_structure(lambda tensor: tensor.shape.as_list(), tf.nest.flatten(played))
      )
      return played

    played = play(carry)
  assert traced == [[list(x.shape) for x in tf.nest.flatten(played)]]


@_both_modes
def test_state_of_the_policy_is_reset_when_an_episode_ends(eager):
  batch = _counters(2, 3, 9)
  carry = simulate.initial_carry(batch.reset(), state=tf.zeros(3))
  played = _play(batch, _RememberingActor(), carry, num_steps=5, eager=eager)
  assert played.carry.state.tolist() == [5 % 2, 5 % 3, 5]
