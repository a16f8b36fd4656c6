"""Simulations of episodes, compared with loops over single environments."""

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.environments.making import action_scaling
from agents.simulation import in_graph_batch_env, simulate
from tests import toy
from tests.support import modes

_SEED = 3
_MAX_LENGTHS = 2, 4, 9  # Maximum length of each environment's episodes.
_counts = pytest.mark.parametrize("counts", [(1, 1, 1), (3, 3, 3), (1, 2, 5), (4, 1, 0)], ids=str)
_both_modes = pytest.mark.parametrize("eager", [True, False], ids=["eager", "graph"])


class _Actor:
  """Returns actions that depend on the observation and the step counter."""

  def noise(self, step_counter, num_envs):
    return tf.fill([num_envs, 1], 0.01 * tf.cast(step_counter, tf.float32))

  def initial_state(self, num_envs):
    return ()

  def act(self, observ, state, noise):
    return (-observ * 0.7 if noise is None else observ * 0.7 + noise), state


class _Reference(NamedTuple):
  """Steps and episodes of one environment."""

  steps: list[dict[str, Any]]  # Fields of a transition.
  scores: list[float]
  lengths: list[int]
  ends: list[int]  # Time of each episode's last step.
  observ: np.ndarray  # First observation of the next episode.


def _uneven(index):
  return toy.Uneven(_MAX_LENGTHS[index])


def _batch():
  return batch_env.BatchEnv([functools.partial(_uneven, index) for index in range(3)], seed=_SEED)


@functools.cache
def _play_alone(index, num_episodes, explore=True):
  """Plays episodes of one environment in a Python loop."""
  env = _uneven(index)
  convert = action_scaling.action_converter(env.action_space)
  reference = _Reference([], [], [], [], np.zeros(1))
  observ, _ = env.reset(seed=episode_data.episode_seed(_SEED, index, 0))
  for episode in range(num_episodes):
    score, length, ended = np.float32(0), 0, False
    while not ended:
      time = len(reference.steps)
      noise = _Actor().noise(tf.constant(time, tf.int64), 1)[0]
      action, _ = _Actor().act(tf.constant(observ), (), noise if explore else None)
      action = action.numpy()
      next_observ, reward, *ends, _ = env.step(convert(action))
      reference.steps.append(
        {
          "observ": observ,
          "action": action,
          "reward": reward,
          "terminated": ends[0],
          "truncated": ends[1],
          "next_observ": next_observ,
          "valid": True,
        }
      )
      score, length, ended = score + np.float32(reward), length + 1, any(ends)
      observ = next_observ
    reference.scores.append(score)
    reference.lengths.append(length)
    reference.ends.append(len(reference.steps) - 1)
    seed = episode_data.episode_seed(_SEED, index, episode + 1)
    observ, _ = env.reset(seed=seed)
  return reference._replace(observ=observ)


def _player(batch, max_steps, explore=True):
  """Returns a function that plays episodes, and a list with its traces."""
  env = in_graph_batch_env.InGraphBatchEnv(batch)
  traces = []

  @tf.function
  def play(carry, episodes_left):
    traces.append(None)
    return simulate.simulate_episodes(env, _Actor(), carry, max_steps, explore, episodes_left)

  return play, traces


def _ended(played):
  return np.logical_or(played.transitions.terminated, played.transitions.truncated)


def _expected_episodes(counts, explore=True):
  """Returns scores and lengths of all episodes, in order of their ends.

  Args:
    counts: Number of episodes of each environment.
    explore: Whether to sample actions.
  """
  finished = []
  for index, count in enumerate(counts):
    alone = _play_alone(index, count, explore)
    finished += zip(alone.ends, [index] * count, alone.scores, alone.lengths)
  return [episode[2:] for episode in sorted(finished)]


def _step_fields(played):
  """Returns the fields of the transitions that have a row for each step."""
  fields = played.transitions._asdict()
  del fields["final_observ"]
  return fields


def _assert_finished(finished, expected):
  assert [x.length for x in finished] == [length for _, length in expected]
  np.testing.assert_allclose(
    [x.score for x in finished], [score for score, _ in expected], rtol=1e-5
  )


def _play(batch, counts, max_steps=100, explore=True):
  """Returns the simulation and the number of episodes left, as arrays."""
  play, _ = _player(batch, max_steps, explore)
  carry = simulate.initial_carry(batch.reset())
  return tf.nest.map_structure(lambda tensor: tensor.numpy(), play(carry, tf.constant(counts)))


def test_episodes_of_separate_environments_differ_in_length():
  lengths = [_play_alone(index, 5).lengths for index in range(3)]
  assert len({max(row) for row in lengths}) == 3
  assert all(len(set(row)) > 1 for row in lengths)


@pytest.mark.fast_variants(3)
@_both_modes
@_counts
def test_episodes_equal_those_of_separate_environments(counts, eager):
  with _batch() as batch, modes.functions_run_eagerly(eager):
    played, left = _play(batch, counts)
    taken, running = batch.get("taken"), batch.snapshot()
    finished = batch.take_finished()
  alone = [_play_alone(index, count) for index, count in enumerate(counts)]
  totals = [sum(one.lengths) for one in alone]
  # The loop ends with the last episode, and no environment takes extra steps.
  assert len(played.transitions.valid) == max(totals)
  assert taken == totals
  assert left.tolist() == [0, 0, 0]
  assert played.carry.step_counter == max(totals)
  np.testing.assert_array_equal(running.score, 0)
  np.testing.assert_array_equal(running.length, 0)
  _assert_finished(finished, _expected_episodes(counts))
  for index, one in enumerate(alone):
    np.testing.assert_array_equal(played.carry.observ[index], one.observ)
    for name, field in _step_fields(played).items():
      for step, expected in zip(field[:, index], one.steps):
        np.testing.assert_allclose(step, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)
    ended = np.flatnonzero(_ended(played)[:, index]).tolist()
    assert ended == one.ends
  np.testing.assert_array_equal(
    played.transitions.final_observ, played.transitions.next_observ[_ended(played)]
  )


@_both_modes
def test_waiting_environments_have_no_rewards_and_no_episode_ends(eager):
  with _batch() as batch, modes.functions_run_eagerly(eager):
    played, _ = _play(batch, (1, 2, 5))
    finished = batch.take_finished()
  waiting = ~played.transitions.valid
  assert waiting[:, :2].any(0).all() and not waiting[:, 2].any()
  # An environment that waits never steps again.
  assert (np.diff(waiting.astype(int), axis=0) >= 0).all()
  for field in (
    played.transitions.terminated,
    played.transitions.truncated,
    played.transitions.reward,
  ):
    assert not field[waiting].any()
  _assert_finished(finished, _expected_episodes((1, 2, 5)))
  for name in ("observ", "next_observ"):
    for index in (0, 1):
      rows = getattr(played.transitions, name)[waiting[:, index], index]
      np.testing.assert_array_equal(rows, np.broadcast_to(played.carry.observ[index], rows.shape))


@pytest.mark.parametrize("explore", [False, True])
def test_short_episodes_do_not_count_more_often_than_long_ones(explore):
  with _batch() as batch:
    played, _ = _play(batch, (5, 5, 5), explore=explore)
    finished = batch.take_finished()
  assert _ended(played).sum(0).tolist() == [5, 5, 5]
  _assert_finished(finished, _expected_episodes((5, 5, 5), explore))


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("max_steps", [1, 3, 4, 50])
def test_consecutive_simulations_equal_one_long_simulation(max_steps):
  counts = (1, 2, 5)
  with _batch() as batch:
    complete, _ = _play(batch, counts)
    finished = batch.take_finished()
  parts = []
  with _batch() as batch:
    play, traces = _player(batch, max_steps)
    carry = simulate.initial_carry(batch.reset())
    left = tf.constant(counts)
    while left.numpy().any():
      part, left = play(carry, left)
      carry = part.carry
      parts.append(part)
      assert len(parts) < 100, "The simulation does not end."
      ended = sum(_ended(x).sum(0) for x in parts)
      assert left.numpy().tolist() == (counts - ended).tolist()
    assert batch.take_finished() == finished and len(finished) == sum(counts)
  assert len(traces) == 1
  assert all(len(part.transitions.valid) == max_steps for part in parts[:-1])
  assert 1 <= len(parts[-1].transitions.valid) <= max_steps
  tf.nest.map_structure(np.testing.assert_array_equal, carry, complete.carry)
  tf.nest.map_structure(
    lambda expected, *rows: np.testing.assert_array_equal(np.concatenate(rows), expected),
    complete.transitions,
    *[part.transitions for part in parts],
  )


def test_one_trace_serves_any_number_of_episodes():
  with _batch() as batch:
    play, traces = _player(batch, 60)
    lengths = set()
    for counts in ((1, 1, 1), (2, 2, 2), (0, 0, 3), (1, 0, 0)):
      carry = simulate.initial_carry(batch.reset())
      played, _ = play(carry, tf.constant(counts))
      lengths.add(len(played.transitions.reward))
  assert len(traces) == 1 and len(lengths) > 2


def test_zero_episodes_take_no_steps():
  with _batch() as batch:
    played, _ = _play(batch, (0, 0, 0))
    assert batch.get("taken") == [0, 0, 0]
    assert batch.take_finished() == []
  for name, field in _step_fields(played).items():
    sizes = (1,) if name in ("observ", "action", "next_observ") else ()
    assert field.shape == (0, 3, *sizes), name


def test_next_simulation_begins_with_the_next_episodes():
  with _batch() as batch:
    play, _ = _player(batch, 60)
    carry = simulate.initial_carry(batch.reset())
    lengths = [[], [], []]
    for _ in range(3):
      played, _ = play(carry, tf.constant((2, 1, 1)))
      carry = played.carry
      ended = np.argwhere(_ended(played))[:, 1].tolist()
      for index, episode in zip(ended, batch.take_finished(), strict=True):
        lengths[index].append(episode.length)
  assert lengths == [_play_alone(index, count).lengths for index, count in enumerate((6, 3, 3))]


def test_all_sizes_but_the_number_of_steps_are_static():
  with _batch() as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    traced = []

    @tf.function
    def play(carry, episodes_left):
      played, _ = simulate.simulate_episodes(env, _Actor(), carry, 60, True, episodes_left)
      played = played._replace(  # The number of ended episodes is dynamic.
        transitions=played.transitions._replace(final_observ=())
      )
      traced.append([x.shape.as_list() for x in tf.nest.flatten(played)])
      for tensor in tf.nest.flatten(played.transitions):
        assert tensor.shape[0] is None
      return played

    played = play(simulate.initial_carry(batch.reset()), tf.constant((1, 1, 1)))
  num_steps = len(played.transitions.reward)
  shapes = [[num_steps if size is None else size for size in shape] for shape in traced[0]]
  assert shapes == [list(x.shape) for x in tf.nest.flatten(played)]
