"""Environments that play a number of episodes each, against plain loops."""

import functools
from typing import Any
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.making import action_scaling
from agents.simulation import in_graph_batch_env
from agents.simulation import simulate
from tests import modes
from tests import toy

_SEED = 3
_MOST = 2, 4, 9  # Steps of the longest episode of each environment.
_QUOTAS = [(1, 1, 1), (3, 3, 3), (1, 2, 5), (4, 1, 0)]
_quotas = pytest.mark.parametrize("quota", _QUOTAS, ids=str)
_both_modes = pytest.mark.parametrize(
    "eager", [True, False], ids=["eager", "graph"])


class _Follower:
  """Acts on time and on what it sees."""

  def noise(self, clock, amount):
    return tf.fill([amount, 1], 0.01 * tf.cast(clock, tf.float32))

  def initial_state(self, amount):
    return ()

  def act(self, observ, state, noise):
    return (-observ * 0.7 if noise is None else observ * 0.7 + noise), state


class _Played(NamedTuple):
  """What one environment did, step by step and in all."""

  steps: list[dict[str, Any]]  # Fields of a transition.
  scores: list[float]
  lengths: list[int]
  ends: list[int]  # Time of each episode's last step.
  observ: np.ndarray  # First of the next episode.


def _uneven(number):
  return toy.Uneven(_MOST[number])


def _batch():
  return batch_env.BatchEnv(
      [functools.partial(_uneven, number) for number in range(3)], seed=_SEED)


@functools.cache
def _by_hand(number, amount, explore=True):
  """Play one environment's episodes one after the other, in plain Python."""
  env = _uneven(number)
  convert = action_scaling.action_converter(env.action_space)
  played = _Played([], [], [], [], np.zeros(1))
  observ, _ = env.reset(seed=episodes.episode_seed(_SEED, number, 0))
  for episode in range(amount):
    score, length, ended = np.float32(0), 0, False
    while not ended:
      time = len(played.steps)
      noise = _Follower().noise(tf.constant(time, tf.int64), 1)[0]
      action, _ = _Follower().act(
          tf.constant(observ), (), noise if explore else None)
      action = action.numpy()
      next_observ, reward, *ends, _ = env.step(convert(action))
      played.steps.append({
          "observ": observ, "action": action, "reward": reward,
          "terminated": ends[0], "truncated": ends[1],
          "next_observ": next_observ, "valid": True})
      score, length, ended = score + np.float32(reward), length + 1, any(ends)
      observ = next_observ
    played.scores.append(score)
    played.lengths.append(length)
    played.ends.append(len(played.steps) - 1)
    seed = episodes.episode_seed(_SEED, number, episode + 1)
    observ, _ = env.reset(seed=seed)
  return played._replace(observ=observ)


def _player(batch, steps, explore=True):
  """Return the function that plays from a carry, and how often it is traced."""
  env = in_graph_batch_env.InGraphBatchEnv(batch)
  traces = []
  @tf.function
  def play(carry, quota):
    traces.append(None)
    return simulate.simulate(env, _Follower(), carry, steps, explore, quota)
  return play, traces


def _ended(played):
  return np.logical_or(
      played.transitions.terminated, played.transitions.truncated)


def _in_order_of_time(amounts, explore=True):
  """Return scores and lengths of the episodes that each environment plays."""
  played = []
  for number, amount in enumerate(amounts):
    one = _by_hand(number, amount, explore)
    played += zip(one.ends, [number] * amount, one.scores, one.lengths)
  return [episode[2:] for episode in sorted(played)]


def _by_step(played):
  """Fields of the transitions that have a row for each step."""
  fields = played.transitions._asdict()
  del fields["final_observ"]
  return fields


def _assert_finished(finished, expected):
  assert [x.length for x in finished] == [length for _, length in expected]
  np.testing.assert_allclose(
      [x.score for x in finished], [score for score, _ in expected], rtol=1e-5)


def _play(batch, quota, steps=100, explore=True):
  play, _ = _player(batch, steps, explore)
  carry = simulate.initial_carry(batch.reset())
  return tf.nest.map_structure(
      lambda tensor: tensor.numpy(), play(carry, tf.constant(quota)))


def test_episodes_differ_in_length():
  lengths = [_by_hand(number, 5).lengths for number in range(3)]
  assert len({max(row) for row in lengths}) == 3
  assert all(len(set(row)) > 1 for row in lengths)


@_both_modes
@_quotas
def test_equals_playing_one_after_the_other(quota, eager):
  with _batch() as batch, modes.functions_run_eagerly(eager):
    played = _play(batch, quota)
    taken, running = batch.get("taken"), batch.snapshot()
  alone = [_by_hand(number, amount) for number, amount in enumerate(quota)]
  totals = [sum(one.lengths) for one in alone]
  # As long as it takes the longest, and no step in vain.
  assert len(played.transitions.valid) == max(totals)
  assert taken == totals
  assert played.left.tolist() == [0, 0, 0]
  assert played.carry.step_counter == max(totals)
  np.testing.assert_array_equal(running.score, 0)
  np.testing.assert_array_equal(running.length, 0)
  _assert_finished(batch.finished, _in_order_of_time(quota))
  for number, one in enumerate(alone):
    np.testing.assert_array_equal(played.carry.observ[number], one.observ)
    for name, field in _by_step(played).items():
      for step, expected in zip(field[:, number], one.steps):
        np.testing.assert_allclose(
            step, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)
    ended = np.flatnonzero(_ended(played)[:, number]).tolist()
    assert ended == one.ends
  np.testing.assert_array_equal(
      played.transitions.final_observ,
      played.transitions.next_observ[_ended(played)])


@_both_modes
def test_nothing_comes_from_those_who_wait(eager):
  with _batch() as batch, modes.functions_run_eagerly(eager):
    played = _play(batch, (1, 2, 5))
  waiting = ~played.transitions.valid
  assert waiting[:, :2].any(0).all() and not waiting[:, 2].any()
  # They have all begun to wait for good.
  assert (np.diff(waiting.astype(int), axis=0) >= 0).all()
  for field in (played.transitions.terminated, played.transitions.truncated,
                played.transitions.reward):
    assert not field[waiting].any()
  _assert_finished(batch.finished, _in_order_of_time((1, 2, 5)))
  for name in ("observ", "next_observ"):
    for number in (0, 1):
      seen = getattr(played.transitions, name)[waiting[:, number], number]
      np.testing.assert_array_equal(
          seen, np.broadcast_to(played.carry.observ[number], seen.shape))


@pytest.mark.parametrize("explore", [False, True])
def test_short_episodes_are_not_preferred(explore):
  """All that has begun counts; in so many steps it would not."""
  with _batch() as batch:
    played = _play(batch, (5, 5, 5), explore=explore)
  assert _ended(played).sum(0).tolist() == [5, 5, 5]
  _assert_finished(batch.finished, _in_order_of_time((5, 5, 5), explore))


@pytest.mark.parametrize("steps", [1, 3, 4, 50])
def test_goes_on_where_it_was_cut_off(steps):
  quota = (1, 2, 5)
  with _batch() as batch:
    whole = _play(batch, quota)
    finished = batch.finished
  parts = []
  with _batch() as batch:
    play, traces = _player(batch, steps)
    carry = simulate.initial_carry(batch.reset())
    left = tf.constant(quota)
    while left.numpy().any():
      part = play(carry, left)
      carry, left = part.carry, part.left
      parts.append(part)
      assert len(parts) < 100, "It does not come to an end."
      ended = sum(_ended(x).sum(0) for x in parts)
      assert left.numpy().tolist() == (quota - ended).tolist()
  assert len(traces) == 1
  assert all(len(part.transitions.valid) == steps for part in parts[:-1])
  assert 1 <= len(parts[-1].transitions.valid) <= steps
  tf.nest.map_structure(np.testing.assert_array_equal, carry, whole.carry)
  tf.nest.map_structure(
      lambda expected, *rows: np.testing.assert_array_equal(
          np.concatenate(rows), expected),
      whole.transitions, *[part.transitions for part in parts])
  assert batch.finished == finished and len(finished) == sum(quota)


def test_one_graph_for_any_quota_and_any_time_it_takes():
  with _batch() as batch:
    play, traces = _player(batch, 60)
    lengths = set()
    for quota in ((1, 1, 1), (2, 2, 2), (0, 0, 3), (1, 0, 0)):
      carry = simulate.initial_carry(batch.reset())
      lengths.add(len(play(carry, tf.constant(quota)).transitions.reward))
  assert len(traces) == 1 and len(lengths) > 2


def test_nobody_has_to_play():
  with _batch() as batch:
    played = _play(batch, (0, 0, 0))
    assert batch.get("taken") == [0, 0, 0]
  for name, field in _by_step(played).items():
    rest = (1,) if name in ("observ", "action", "next_observ") else ()
    assert field.shape == (0, 3, *rest), name
  assert batch.finished == []


def test_the_next_quota_begins_with_the_next_episodes():
  with _batch() as batch:
    play, _ = _player(batch, 60)
    carry = simulate.initial_carry(batch.reset())
    lengths = [[], [], []]
    for _ in range(3):
      played = play(carry, tf.constant((2, 1, 1)))
      carry = played.carry
      ended = np.argwhere(_ended(played))[:, 1].tolist()
      for number, episode in zip(ended, batch.finished, strict=True):
        lengths[number].append(episode.length)
      batch.finished.clear()
  assert lengths == [_by_hand(number, amount).lengths
                     for number, amount in enumerate((6, 3, 3))]


def test_all_but_the_time_is_known_while_tracing():
  with _batch() as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    traced = []
    @tf.function
    def play(carry, quota):
      played = simulate.simulate(env, _Follower(), carry, 60, True, quota)
      played = played._replace(  # As many as episodes end.
          transitions=played.transitions._replace(final_observ=()))
      traced.append([x.shape.as_list() for x in tf.nest.flatten(played)])
      for tensor in tf.nest.flatten(played.transitions):
        assert tensor.shape[0] is None
      return played
    played = play(simulate.initial_carry(batch.reset()),
                  tf.constant((1, 1, 1)))
  time = len(played.transitions.reward)
  found = [[time if size is None else size for size in shape]
           for shape in traced[0]]
  assert found == [list(x.shape) for x in tf.nest.flatten(played)]
