"""The loop against stepping by hand, and what it keeps account of."""

import numpy as np
import pytest
import tensorflow as tf

from agents import types
from agents.environments import batch_env
from agents.simulation import in_graph_batch_env
from agents.simulation import simulate
from tests import modes
from tests import toy
from tests.simulation import policies

_both_modes = pytest.mark.parametrize(
    "eager", [True, False], ids=["eager", "graph"])


class _Clockwork:
  """Acts 0.1 * clock + environment, whatever it sees."""

  def noise(self, clock, amount):
    return (0.1 * tf.cast(clock, tf.float32) + tf.range(float(amount)))[:, None]

  def initial_state(self, amount):
    return ()

  def act(self, observ, state, noise):
    return noise, state


def _counters(*lengths, truncates=False):
  return batch_env.BatchEnv(
      [lambda length=length: toy.Counter(length, truncates)
       for length in lengths], seed=3)


def _targets(discrete):
  return batch_env.BatchEnv(
      [lambda length=length: toy.Target(discrete, length)
       for length in (2, 3, 5)], seed=3)


def _start(batch):
  return simulate.initial_carry(batch.reset())


def _play(batch, actor, carry, steps, explore=True, eager=False):
  env = in_graph_batch_env.InGraphBatchEnv(batch)
  @tf.function
  def play(carry):
    return simulate.simulate(env, actor, carry, steps, explore)
  with modes.functions_run_eagerly(eager):
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), play(carry))


def _ended(played):
  return played.transitions.terminated | played.transitions.truncated


def _finished(batch):
  return [(episode.score, episode.length) for episode in batch.finished]


# Of seven steps of episodes of two and of three steps.
_NO, _YES = False, True
_ENDED = [[_NO, _YES, _NO, _YES, _NO, _YES, _NO],
          [_NO, _NO, _YES, _NO, _NO, _YES, _NO]]
_LENGTHS = [[1, 2, 1, 2, 1, 2, 1], [1, 2, 3, 1, 2, 3, 1]]


@_both_modes
def test_scores_and_lengths_run_within_their_episode(eager):
  with _counters(2, 3) as batch:  # Rewards are 1, 2, 3, ...
    played = _play(batch, _Clockwork(), _start(batch), 7, eager=eager)
    running = batch.snapshot()
  np.testing.assert_array_equal(_ended(played).T, _ENDED)
  np.testing.assert_array_equal(played.transitions.reward.T, _LENGTHS)
  assert _finished(batch) == [(3, 2), (6, 3), (3, 2), (3, 2), (6, 3)]
  np.testing.assert_array_equal(running.score, [1, 1])
  np.testing.assert_array_equal(running.length, [1, 1])
  assert played.carry.step_counter == 7


@pytest.mark.parametrize("truncates", [False, True])
def test_ends_are_told_apart(truncates):
  with _counters(2, 3, truncates=truncates) as batch:
    played = _play(batch, _Clockwork(), _start(batch), 7)
  transitions = played.transitions
  ended, never = transitions.terminated, transitions.truncated
  if truncates:
    ended, never = never, ended
  np.testing.assert_array_equal(ended.T, _ENDED)
  assert ended.sum() == 5 and not never.any()


def test_next_observ_is_the_successor_and_never_a_reset():
  with _counters(2, 3) as batch:
    played = _play(batch, _Clockwork(), _start(batch), 7)
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
def test_continues_from_the_carry(eager):
  with _counters(2, 3, 5) as batch:
    whole = _play(batch, _Clockwork(), _start(batch), 7, eager=eager)
    finished = batch.finished
  with _counters(2, 3, 5) as batch:
    first = _play(batch, _Clockwork(), _start(batch), 4, eager=eager)
    carry = tf.nest.map_structure(tf.constant, first.carry)
    second = _play(batch, _Clockwork(), carry, 3, eager=eager)
  assert first.transitions.reward.shape == (4, 3)
  assert second.transitions.reward.shape == (3, 3)
  tf.nest.map_structure(
      np.testing.assert_array_equal, second.carry, whole.carry)
  tf.nest.map_structure(
      lambda *parts: np.testing.assert_array_equal(
          np.concatenate(parts[:2]), parts[2]),
      first.transitions, second.transitions, whole.transitions)
  assert batch.finished == finished and len(finished) == 3 + 2 + 1


def test_clock_continues_from_where_it_is_set():
  with _counters(5) as batch:
    carry = simulate.initial_carry(batch.reset(), clock=20)
    played = _play(batch, _Clockwork(), carry, 3)
  np.testing.assert_allclose(
      played.transitions.action[:, 0, 0], [2.0, 2.1, 2.2], rtol=1e-6)
  assert played.carry.step_counter == 23


@_both_modes
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("explore", [False, True])
def test_equals_stepping_by_hand(discrete, explore, eager):
  with _targets(discrete) as batch:
    actor = policies.make(batch)
    played = _play(batch, actor, _start(batch), 8, explore, eager)
    finished = batch.finished
  with _targets(discrete) as batch:
    observ = batch.reset()
    expected_finished, score, length = [], np.zeros(3, np.float32), [0] * 3
    for time in range(8):
      action, _ = actor.act(tf.constant(observ), types.NOTHING, actor.noise(
          tf.constant(time, tf.int64), 3) if explore else None)
      action = action.numpy()
      step = batch.step(action)
      for name, expected in (
          ("observ", observ), ("action", action), ("reward", step.reward),
          ("terminated", step.terminated), ("truncated", step.truncated),
          ("next_observ", step.next_observ), ("valid", [True] * 3)):
        np.testing.assert_allclose(
            getattr(played.transitions, name)[time], expected, rtol=1e-5,
            atol=1e-6, err_msg=name)
      observ = step.observ
      score += step.reward
      for index, ended in enumerate(step.terminated | step.truncated):
        length[index] += 1
        if ended:
          expected_finished.append((score[index], length[index]))
          score[index], length[index] = 0, 0
    np.testing.assert_array_equal(played.carry.observ, observ)
  np.testing.assert_allclose(
      [(episode.score, episode.length) for episode in finished],
      expected_finished, rtol=1e-5)
  assert _ended(played).sum() == len(finished) == 4 + 2 + 1
  assert played.left.tolist() == [0, 0, 0]  # There is no quota.


@pytest.mark.parametrize("discrete", [
    pytest.param(False, marks=pytest.mark.slow), True])
def test_the_clock_matters_to_exploring_alone(discrete):
  def actions(explore, clock):
    with _targets(discrete) as batch:
      carry = simulate.initial_carry(batch.reset(), clock)
      played = _play(batch, policies.make(batch), carry, 8, explore)
    return played.transitions.action
  mode = actions(explore=False, clock=0)
  assert len(np.unique(mode)) > 1
  np.testing.assert_array_equal(mode, actions(explore=False, clock=1000))
  sampled = actions(explore=True, clock=0)
  assert (sampled != actions(explore=True, clock=1000)).any()


def test_actions_are_remembered_as_sampled_and_clipped_for_the_environment():
  with _counters(100) as batch:  # Takes actions in [-2, 2].
    carry = simulate.initial_carry(batch.reset(), clock=5)
    taken, remembered = [], []
    for _ in range(8):
      played = _play(batch, _Clockwork(), carry, 1)
      carry = tf.nest.map_structure(tf.constant, played.carry)
      remembered.append(played.transitions.action.item())
      taken.append(batch.get("last_action")[0].item())
  np.testing.assert_allclose(
      remembered, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2], rtol=1e-6)
  np.testing.assert_allclose(
      taken, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("explore", [False, True])
def test_collecting_moves_neither_normalizer_nor_weights(explore):
  with _targets(discrete=False) as batch:
    actor = policies.make(batch)
    before = {name: np.array(variable)
              for name, variable in actor.variables().items()}
    _play(batch, actor, _start(batch), 8, explore)
  for name, variable in actor.variables().items():
    np.testing.assert_array_equal(variable, before[name], err_msg=name)


def test_shapes_are_known_while_tracing():
  with _counters(2, 3) as batch:
    env, carry = in_graph_batch_env.InGraphBatchEnv(batch), _start(batch)
    traced = []
    @tf.function
    def play(carry):
      played = simulate.simulate(env, _Clockwork(), carry, 4, explore=True)
      # How many episodes end, nobody knows.
      assert played.transitions.final_observ.shape.as_list() == [None, 2]
      played = played._replace(
          transitions=played.transitions._replace(final_observ=()))
      traced.append(tf.nest.map_structure(
          lambda tensor: tensor.shape.as_list(), tf.nest.flatten(played)))
      return played
    played = play(carry)
  assert traced == [[list(x.shape) for x in tf.nest.flatten(played)]]
