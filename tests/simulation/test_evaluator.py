"""Evaluators repeat episodes; each environment plays a fixed share."""

import functools

import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.simulation import evaluator, in_graph_batch_env, worker_evaluator
from tests import toy

_SEED, _SIZE = 3, 3
_CLASSES = [evaluator.Evaluator, worker_evaluator.WorkerEvaluator]


class _Actor:
  """Returns the noise, or the first observed number without noise."""

  def noise(self, step_counter, num_envs):
    return tf.fill([num_envs, 1], 0.1 * tf.cast(step_counter, tf.float32))

  def initial_state(self, num_envs):
    return ()

  def act(self, observ, state, noise):
    return observ[:, :1] if noise is None else noise, state


def _evaluator(constructors, evaluator_class, explore=False):
  return evaluator_class(
    in_graph_batch_env.InGraphBatchEnv(batch_env.BatchEnv(constructors, seed=_SEED)),
    _Actor(),
    explore,
  )


@pytest.fixture(scope="module", params=_CLASSES)
def uneven(request):
  """An evaluator of environments with episodes of 1 to 9 steps."""
  player = _evaluator([functools.partial(toy.Uneven, 9)] * _SIZE, request.param)
  yield player
  player.close()


def _seeds(counts):
  return [
    episode_data.episode_seed(_SEED, index, episode)
    for index, count in enumerate(counts)
    for episode in range(count)
  ]


@pytest.mark.parametrize("num_episodes, counts", [(2, (1, 1, 0)), (3, (1, 1, 1)), (7, (3, 2, 2))])
def test_each_environment_plays_its_share_of_the_episodes(uneven, num_episodes, counts):
  finished = uneven.play(num_episodes)
  assert sorted(episode.seed for episode in finished) == sorted(_seeds(counts))
  for episode in finished:
    assert episode.length == toy.Uneven.episode_length(episode.seed, 9)


def test_every_call_plays_the_same_episodes(uneven):
  first, second = uneven.play(6), uneven.play(6)
  assert first == second
  assert all(episode.score for episode in first)


def test_abort_returns_none_and_the_next_call_plays_all_episodes(uneven):
  expected = uneven.play(5)
  assert uneven.play(5, stop=lambda: True) is None
  assert uneven.play(5) == expected


@pytest.mark.parametrize("evaluator_class", _CLASSES)
def test_long_episodes_continue_over_several_calls(evaluator_class):
  constructors = [functools.partial(toy.Counter, length) for length in (20, 130)]
  player = _evaluator(constructors, evaluator_class)
  stops = []
  finished = player.play(2, stop=lambda: bool(stops.append(None)))
  player.close()
  assert sorted(episode.length for episode in finished) == [20, 130]
  # A call takes 50 steps; the next call of a fast `WorkerEvaluator` takes 100.
  assert len(stops) == 3 or evaluator_class is not evaluator.Evaluator and len(stops) == 2


@pytest.mark.parametrize("evaluator_class", _CLASSES)
@pytest.mark.parametrize("explore", [False, True])
def test_explore_samples_actions_instead_of_taking_the_mode(explore, evaluator_class):
  player = _evaluator([functools.partial(toy.Uneven, 9)], evaluator_class, explore)
  (episode,) = player.play(1)
  player.close()
  steps = [0.1 * step for step in range(episode.length)]
  assert (episode.action[:, 0] == pytest.approx(steps)) == explore


@pytest.mark.parametrize("evaluator_class", _CLASSES)
def test_error_of_an_environment_keeps_its_type(evaluator_class):
  player = _evaluator([toy.Counter, functools.partial(toy.Faulty, "raise")], evaluator_class)
  with pytest.raises(ValueError, match="^faulty step$") as caught:
    player.play(2)
  assert "Environment 1" in str(caught.value.__cause__)
  player.close()


@pytest.mark.parametrize("evaluator_class", _CLASSES)
def test_closed_evaluator_refuses_to_play(evaluator_class):
  player = _evaluator([toy.Counter], evaluator_class)
  player.close()
  player.close()
  with pytest.raises(RuntimeError, match="closed"):
    player.play(1)
