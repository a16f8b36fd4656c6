"""The evaluator plays the same episodes every time, an equal share each."""

import functools

import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.simulation import evaluator, in_graph_batch_env
from tests import toy

_SEED, _SIZE = 3, 3


class _Actor:
  """Returns the first observed number or, to explore, noise."""

  def noise(self, step_counter, num_envs):
    return tf.fill([num_envs, 1], 0.1 * tf.cast(step_counter, tf.float32))

  def initial_state(self, num_envs):
    return ()

  def act(self, observ, state, noise):
    return observ[:, :1] if noise is None else noise, state


def _evaluator(constructors, explore=False):
  return evaluator.Evaluator(in_graph_batch_env.InGraphBatchEnv(
      batch_env.BatchEnv(constructors, seed=_SEED)), _Actor(), explore)


@pytest.fixture(scope="module")
def uneven():
  """An evaluator of environments with episodes of 1 to 9 steps."""
  played = _evaluator([functools.partial(toy.Uneven, 9)] * _SIZE)
  yield played
  played.close()


def _seeds(counts):
  return [episode_data.episode_seed(_SEED, index, episode)
          for index, count in enumerate(counts) for episode in range(count)]


@pytest.mark.parametrize("num_episodes, counts", [
    (2, (1, 1, 0)), (3, (1, 1, 1)), (7, (3, 2, 2))])
def test_each_environment_plays_its_share_of_the_episodes(
    uneven, num_episodes, counts):
  finished = uneven.play(num_episodes)
  assert sorted(episode.seed for episode in finished) == sorted(_seeds(counts))
  for episode in finished:
    assert episode.length == toy.Uneven.lasts(episode.seed, 9)


def test_every_call_plays_the_same_episodes(uneven):
  first, second = uneven.play(6), uneven.play(6)
  assert first == second
  assert all(episode.score for episode in first)


def test_abort_returns_none_and_the_next_call_plays_all_episodes(uneven):
  expected = uneven.play(5)
  assert uneven.play(5, stop=lambda: True) is None
  assert uneven.play(5) == expected


def test_long_episodes_continue_over_several_graph_calls():
  played = _evaluator([functools.partial(toy.Counter, length)
                       for length in (20, 130)])
  stops = []
  finished = played.play(2, stop=lambda: bool(stops.append(None)))
  played.close()
  assert sorted(episode.length for episode in finished) == [20, 130]
  assert len(stops) == 3  # A graph call takes 50 steps.


@pytest.mark.parametrize("explore", [False, True])
def test_actions_are_the_mode_or_samples(explore):
  played = _evaluator([functools.partial(toy.Uneven, 9)], explore)
  episode, = played.play(1)
  played.close()
  steps = [0.1 * step for step in range(episode.length)]
  assert (episode.action[:, 0] == pytest.approx(steps)) == explore


def test_error_of_an_environment_keeps_its_type():
  played = _evaluator([toy.Counter, functools.partial(toy.Faulty, "raise")])
  with pytest.raises(ValueError, match="^faulty step$") as caught:
    played.play(2)
  assert "Environment 1" in str(caught.value.__cause__)
  played.close()


def test_closed_evaluator_refuses_to_play():
  played = _evaluator([toy.Counter])
  played.close()
  played.close()
  with pytest.raises(RuntimeError, match="closed"):
    played.play(1)
