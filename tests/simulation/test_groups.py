"""Groups of environments that act in turns, against all acting at once."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments import workers as workers_lib
from agents.simulation import in_graph_batch_env
from agents.simulation import simulate
from tests import modes
from tests import toy
from tests.simulation import policies

_both_modes = pytest.mark.parametrize(
    "eager", [True, False], ids=["eager", "graph"])
_groups = pytest.mark.parametrize("groups", [
    3, *(pytest.param(groups, marks=pytest.mark.slow) for groups in (2, 6))])


class _Witness:
  """Acts on what it sees and on its noise, which tells environments apart."""

  def noise(self, clock, amount):
    return (0.01 * tf.cast(clock, tf.float32) + 0.1 * tf.range(
        float(amount)))[:, None]

  def initial_state(self, amount):
    return ()

  def act(self, observ, state, noise):
    action = 0.001 * tf.reduce_sum(observ, -1, keepdims=True)
    return (action if noise is None else action + noise), state


def _counters(groups, workers=None):
  return batch_env.BatchEnv(
      [functools.partial(toy.Counter, length) for length in (
          1, 2, 3, 4, 5, 50)], workers, seed=3, groups=groups)


def _targets(groups, discrete):
  return batch_env.BatchEnv(
      [functools.partial(toy.Target, discrete, length)
       for length in (2, 3, 5, 2, 3, 5)], seed=3, groups=groups)


def _collect(batch, actor, explore=True, eager=False):
  """Collect twice, seven steps and four; return all as arrays."""
  env = in_graph_batch_env.InGraphBatchEnv(batch)
  @functools.partial(tf.function, autograph=False)
  def collect(carry):
    first = simulate.simulate(env, actor, carry, 7, explore)
    return first, simulate.simulate(env, actor, first.carry, 4, explore)
  with modes.functions_run_eagerly(eager), env.original_errors():
    played = collect(simulate.initial_carry(batch.reset(), 5))
  return [tf.nest.map_structure(lambda x: x.numpy(), (
      part.carry, part.transitions)) for part in played]


def _assert_same(one, other):
  for array, same in zip(tf.nest.flatten(one), tf.nest.flatten(other),
                         strict=True):
    assert array.shape == same.shape and array.dtype == same.dtype
    np.testing.assert_array_equal(array, same)


@_both_modes
@_groups
@pytest.mark.parametrize("explore", [False, True])
def test_groups_make_no_difference(explore, groups, eager):
  with _counters(1) as batch:
    expected = _collect(batch, _Witness(), explore)
    finished, running = batch.finished, batch.snapshot()
  assert len(finished) > 11
  with _counters(groups) as batch:
    _assert_same(expected, _collect(batch, _Witness(), explore, eager))
    assert batch.finished == finished
    _assert_same(running.arrays(), batch.snapshot().arrays())


@_groups
def test_groups_make_no_difference_with_workers(groups):
  with _counters(1) as batch:
    expected = _collect(batch, _Witness())
  with workers_lib.Workers(2) as workers, _counters(groups, workers) as batch:
    _assert_same(expected, _collect(batch, _Witness()))


@pytest.mark.parametrize("explore, discrete, groups", [
    (False, False, 2), pytest.param(False, True, 3, marks=pytest.mark.slow),
    (True, False, 6), pytest.param(True, True, 2, marks=pytest.mark.slow)])
def test_groups_make_no_difference_to_a_policy(explore, discrete, groups):
  def play(groups):
    with _targets(groups, discrete) as batch:
      return _collect(batch, policies.make(batch), explore)
  _assert_same(play(1), play(groups))


def test_shapes_are_known_while_tracing():
  with _counters(3) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    traced = []
    @tf.function(autograph=False)
    def play(carry):
      played = simulate.simulate(env, _Witness(), carry, 4, explore=True)
      played = played._replace(  # How many episodes end, nobody knows.
          transitions=played.transitions._replace(final_observ=()))
      traced.append([x.shape.as_list() for x in tf.nest.flatten(played)])
      return played
    played = play(simulate.initial_carry(batch.reset()))
  assert traced == [[list(x.shape) for x in tf.nest.flatten(played)]]


@pytest.mark.parametrize("faulty, eager", [
    (0, True), (1, True), (2, True), (3, False)])
def test_faults_come_out_as_themselves(faulty, eager):
  constructors = [toy.Counter] * 4
  constructors[faulty] = functools.partial(toy.Faulty, "raise")
  with workers_lib.Workers(2) as workers:
    with batch_env.BatchEnv(constructors, workers, groups=2) as batch:
      with pytest.raises(ValueError, match="^faulty step$") as caught:
        _collect(batch, _Witness(), eager=eager)
      assert f"Environment {faulty} " in str(caught.value.__cause__)
      # Nothing is under way that would get into the way of others.
      batch.reset()
      assert batch.snapshot().length.tolist() == [0] * 4


def test_a_quota_is_for_one_group():
  with _counters(2) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    carry = simulate.initial_carry(batch.reset())
    with pytest.raises(ValueError, match="one group"):
      simulate.simulate(env, _Witness(), carry, 4, explore=True,
                        quota=tf.ones([6], tf.int32))
