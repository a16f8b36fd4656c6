"""Policies act inside of the workers as in the graph."""

import contextlib
import functools
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from agents import build, config
from agents.distributed import padded_actor
from agents.environments import batch_env
from agents.environments.data import episode_data, failure_budget
from agents.environments.making import make
from agents.environments.workers import pool
from agents.simulation import evaluator, in_graph_batch_env, worker_evaluator
from tests import echo, toy
from tests.environments import faulty_envs

_SEED = 3


class _Linear:
  """Multiplies observations by a variable."""

  def __init__(self, operation=tf.identity, weight=((0.5,), (0.25,))):
    self.weight = tf.Variable(weight)
    self._operation = operation

  def initial_state(self, num_envs):
    return ()

  def act(self, observ, state, noise):
    return self._operation(tf.matmul(observ, self.weight)), state


class _FailsAt(toy.Counter):
  """Fails in the fourth step of its second episode."""

  def __init__(self, first_length):
    super().__init__(first_length)
    self._episode = 0

  def reset(self, *, seed=None, options=None):
    self._episode += 1
    return super().reset(seed=seed)

  def step(self, action):
    if self._episode == 2:
      self.length = 9
      if self._step == 3:
        raise ValueError("late")
    return super().step(action)


class _FailsInSecondReset(_FailsAt):
  """Fails in the reset after its first episode."""

  def __init__(self):
    super().__init__(3)

  def reset(self, *, seed=None, options=None):
    if self._episode == 1:
      raise ValueError("second reset")
    return super().reset(seed=seed)


def _evaluator(constructors, actor, workers=None, **kwargs):
  batch = batch_env.BatchEnv(constructors, workers, _SEED, **kwargs)
  return worker_evaluator.WorkerEvaluator(
    in_graph_batch_env.InGraphBatchEnv(batch), actor, explore=False
  )


def _play(constructors, actor, num_episodes):
  player = _evaluator(constructors, actor)
  episodes = player.play(num_episodes)
  player.close()
  return episodes


def _trained(settings, constructor=None, workers=None, num_envs=2, **kwargs):
  """Returns an evaluator of a policy with random weights in all layers."""
  constructor = constructor or make.MakeEnv(settings.env)
  player = _evaluator([constructor] * num_envs, None, workers, **kwargs)
  env = player.env.batch_env
  algorithm = build.algorithm(settings, env.observation_space, env.action_space)
  rng = np.random.default_rng(0)
  for variable in algorithm.weights:
    variable.assign(rng.normal(0, 0.3, variable.shape))
  player._actor = algorithm
  return player


def _acts_in_graph(player, monkeypatch):
  """Returns whether an evaluator uses the graph."""
  calls = []
  chunk = player._chunk
  monkeypatch.setattr(player, "_chunk", lambda *args: calls.append(args) or chunk(*args))
  assert player.play(2)
  return bool(calls)


def test_episodes_equal_those_of_the_graph():
  constructors = [functools.partial(toy.Counter, length) for length in (3, 60, 7)]
  player = _evaluator(constructors, _Linear())
  episodes = player.play(7)
  assert episodes == evaluator.Evaluator.play(player, 7)
  # Observations are [seed % 1000, step].
  for episode in episodes:
    steps = np.arange(episode.length)
    expected = 0.5 * (episode.seed % 1000) + 0.25 * steps
    np.testing.assert_allclose(episode.action[:, 0], expected, rtol=1e-6)
  player.close()


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("name", ["Hopper-v5", "CartPole-v1", "Pendulum-v1"])
def test_networks_act_as_in_the_graph(name, monkeypatch):
  player = _trained(config.Config(env=config.Env(name, max_length=60)))
  assert not _acts_in_graph(player, monkeypatch)
  in_worker, in_graph = player.play(2), evaluator.Evaluator.play(player, 2)
  player.close()
  for episode, expected in zip(in_worker, in_graph, strict=True):
    assert episode.seed == expected.seed
    # Later actions differ, because simulations amplify rounding errors.
    np.testing.assert_allclose(episode.action[:5], expected.action[:5], atol=1e-5)


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("kind", ["dict", "nested"])
def test_parts_of_spaces_reach_the_policy(kind, monkeypatch):
  player = _trained(config.Config(), functools.partial(echo.Echo, kind))
  assert not _acts_in_graph(player, monkeypatch)
  episodes, expected = player.play(3), evaluator.Evaluator.play(player, 3)
  assert [episode.seed for episode in episodes] == [episode.seed for episode in expected]
  scores = [[episode.score for episode in played] for played in (episodes, expected)]
  np.testing.assert_allclose(*scores, rtol=1e-5)
  player.close()


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
  "network", [{"network.frame_stack": 2}, {"network.recurrent": "gru"}, {"image": True}]
)
def test_images_and_policies_with_a_state_act_in_the_graph(network, monkeypatch):
  constructor = toy.Flash if network.pop("image", False) else toy.Counter
  player = _trained(config.Config().override(network), constructor)
  assert _acts_in_graph(player, monkeypatch)
  player.close()


def test_unknown_operations_act_in_the_graph(monkeypatch):
  player = _evaluator([toy.Counter], _Linear(tf.math.lgamma))
  assert _acts_in_graph(player, monkeypatch)
  player.close()


def test_policy_has_the_current_weights():
  actor = _Linear()
  player = _evaluator([toy.Counter], actor)
  (before,) = player.play(1)
  actor.weight.assign([[1.0], [0.5]])
  (after,) = player.play(1)
  player.close()
  np.testing.assert_allclose(after.action, 2 * before.action)


@pytest.mark.slow
def test_number_of_workers_does_not_change_bits():
  env = config.Env("HalfCheetah-v5", max_length=100)

  def scores(num_workers):
    with pool.WorkerPool(num_workers) if num_workers else contextlib.nullcontext() as workers:
      player = _trained(config.Config(env=env), workers=workers, num_envs=5)
      return [(episode.seed, episode.score) for episode in player.play(5)]

  assert scores(0) == scores(1) == scores(3)


def test_bits_do_not_depend_on_the_split_over_machines():
  env = config.Env("HalfCheetah-v5", max_length=50)
  whole = _trained(config.Config(env=env), num_envs=5).play(5)
  parts = []
  for rows in (slice(0, 3), slice(3, 5)):
    player = _trained(config.Config(env=env), num_envs=rows.stop - rows.start, first=rows.start)
    player._actor = padded_actor.PaddedActor(player._actor, rows, 5)
    parts += player.play(rows.stop - rows.start)
  assert parts == whole


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("fault", ["crash", "kill"])
def test_killed_worker_is_replaced_with_the_same_episodes(fault, tmp_path):
  actor, constructors = _Linear(), [functools.partial(toy.Counter, 130)] * 3
  expected = _play(constructors, actor, 5)
  if fault == "crash":
    expected = _play([toy.Counter] * 3, actor, 5)
    constructors = [functools.partial(faulty_envs.FailsOnce, str(tmp_path / "x"), "crash")] * 3
  budget = failure_budget.FailureBudget(20)
  with pool.WorkerPool(2, failure_budget=budget) as workers:
    player = _evaluator(constructors, actor, workers)

    def stop():
      if fault == "kill":
        os.kill(workers.pids[1], signal.SIGKILL)
      return False

    assert player.play(5, stop) == expected
  assert budget.drain()


def test_failed_episodes_count_and_the_next_episode_begins():
  budget = failure_budget.FailureBudget(20)
  player = _evaluator([faulty_envs.Breaks] * 4, _Linear(weight=[[0.5]]), failure_budget=budget)
  episodes, failures = player.play(12), budget.drain()
  in_graph = evaluator.Evaluator.play(player, 12)
  player.close()
  assert episodes == in_graph
  assert [f.text for f in failures] == [f.text for f in budget.drain()]
  assert len(episodes) + len(failures) == 12


@pytest.mark.parametrize("first_length", [2, 60])
def test_fatal_failure_contains_all_actions(first_length):
  budget = failure_budget.FailureBudget()
  constructors = [functools.partial(_FailsAt, first_length), toy.Counter]
  player = _evaluator(constructors, _Linear(), failure_budget=budget)
  with pytest.raises(ValueError, match="late"):
    player.play(4)
  (episode,) = budget.fatal.episodes
  assert episode.seed == episode_data.episode_seed(_SEED, 0, 1)
  expected = 0.5 * (episode.seed % 1000) + 0.25 * np.arange(4)
  np.testing.assert_allclose(episode.action[:, 0], expected, rtol=1e-6)


def test_failed_reset_contains_no_action():
  budget = failure_budget.FailureBudget()
  player = _evaluator([_FailsInSecondReset], _Linear(), failure_budget=budget)
  with pytest.raises(ValueError, match="reset"):
    player.play(2)
  (episode,) = budget.fatal.episodes
  assert episode.seed == episode_data.episode_seed(_SEED, 0, 1)
  assert len(episode.action) == 0
