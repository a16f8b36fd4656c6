"""Epochs of complete episodes: quotas, learning and reproducibility."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from agents.configs import presets

from agents import build, types
from agents import config as config_lib
from agents.environments.data import episode_data
from agents.environments.workers import pool
from agents.ops import random
from agents.training import epoch_result
from agents.training import trainer as trainer_lib
from tests import toy
from tests.training import graph_calls, scored

pytestmark = pytest.mark.slow
_SEED = 5
_MAX_LENGTH = 6  # Steps of the longest episode.
_QUOTA = 3, 3, 2  # Episodes of each environment per epoch.


def _config():
  """Returns the 2017 algorithm with small networks; 8 episodes per epoch."""
  config = config_lib.Config().override({
      "env.id": "tests.toy:Uneven", "env.kwargs.most": _MAX_LENGTH,
      "env.max_length": _MAX_LENGTH + 1, "eval_episodes": 4, "seed": _SEED})
  return presets.apply("paper", config).override({
      "num_envs": 3, "algorithm.update_every": 8,
      "algorithm.learning_rate": 1e-2, "algorithm.update_epochs": 10,
      "network.policy_layers": [8], "network.value_layers": [8]})


def _lengths(epoch, quota=_QUOTA, seed=_SEED):
  """Returns the lengths of an epoch's episodes for each environment."""
  return [[toy.Uneven.lasts(episode_data.episode_seed(seed, index, episode),
                            _MAX_LENGTH)
           for episode in range(epoch * number, (epoch + 1) * number)]
          for index, number in enumerate(quota)]


def _in_order_of_time(lengths):
  """Returns the lengths in order of time, then of environments."""
  ends = [(sum(row[:number + 1]), index, length)
          for index, row in enumerate(lengths)
          for number, length in enumerate(row)]
  return [length for _, _, length in sorted(ends)]


def _never():
  return False


def _copy(arrays):
  return {name: np.array(array) for name, array in arrays.items()}


def _assert_same(first, second):
  assert first.keys() == second.keys()
  for name, array in first.items():
    assert array.tobytes() == second[name].tobytes(), name


class _Trained(NamedTuple):
  """A trainer with the results of its epochs."""

  trainer: trainer_lib.Trainer
  epochs: list[epoch_result.Epoch]
  states: list[dict[str, Any]]  # Before the first epoch and after each.


@pytest.fixture(scope="module")
def trained():
  """A trainer without workers after 60 epochs."""
  trainer = build.trainer(_config(), None)
  trainer.start()
  epochs, states = [], [_copy(trainer.state())]
  for _ in range(60):
    epochs.append(trainer.epoch(0.5))
    states.append(_copy(trainer.state()))
  yield _Trained(trainer, epochs, states)
  trainer.close()


@pytest.fixture(scope="module")
def with_workers():
  """Another trainer with the same config and 2 workers."""
  with pool.WorkerPool(2) as workers:
    trainer = build.trainer(_config(), workers)
    yield trainer
    trainer.close()


def test_every_environment_plays_its_quota(trained):
  for number, epoch in enumerate(trained.epochs):
    lengths = _lengths(number)
    assert scored.lengths(epoch) == _in_order_of_time(lengths)
    assert len(scored.scores(epoch)) == len(scored.reward_parts(epoch)) == 8
    np.testing.assert_allclose(scored.scores(epoch), [
        parts["reward_near"]
        for parts in scored.reward_parts(epoch)], rtol=1e-5)
    assert trained.states[number + 1]["episodes/episode"].tolist() == [
        (number + 1) * quota for quota in _QUOTA]


def test_counters_count_the_steps_of_the_episodes(trained):
  steps = [epoch.steps for epoch in trained.epochs]
  assert len(set(steps)) > 2
  assert all(type(number) is int for number in steps)
  assert steps == [sum(scored.lengths(epoch)) for epoch in trained.epochs]
  # Moments count environment steps, the step counter counts batched steps.
  batched = [max(map(sum, _lengths(number))) for number in range(60)]
  assert len(set(batched)) > 2
  for number, state in enumerate(trained.states):
    assert state["variable/observ/count:0"] == sum(steps[:number])
    assert state["variable/reward/count:0"] == sum(steps[:number])
    assert state["clock"] == sum(batched[:number])


def test_epochs_of_different_lengths_are_traced_once(trained):
  function = trained.trainer.train_epoch
  assert function.experimental_get_tracing_count() == 1


def test_an_epoch_calls_one_graph(trained, monkeypatch):
  trained.trainer.load(trained.states[2])
  graphs = graph_calls.record(monkeypatch)
  trained.trainer.epoch(0.5)
  assert graphs == ["train_epoch"]


def test_metrics_are_finite_floats(trained):
  for epoch in trained.epochs:
    assert all(type(x) is float and np.isfinite(x)
               for x in epoch.metrics.values())


def test_no_episode_is_running_between_epochs(trained):
  for state in trained.states:
    assert state["episodes/length"].tolist() == [0, 0, 0]
    assert state["episodes/action"].size == 0
    assert state["episodes/score"].tolist() == [0, 0, 0]


@pytest.mark.slow
def test_workers_learn_the_same_bits(trained, with_workers):
  with_workers.start()
  _assert_same(with_workers.state(), trained.states[0])
  for number in (0, 1):
    epoch = with_workers.epoch(0.5)
    _assert_same(with_workers.state(), trained.states[number + 1])
    assert epoch[:3] == trained.epochs[number][:3]


@pytest.mark.parametrize("name", [
    "in_process", pytest.param("with_workers", marks=pytest.mark.slow)])
def test_loaded_state_continues_with_the_same_bits(
    name, trained, with_workers):
  trainer = trained.trainer if name == "in_process" else with_workers
  for number in (4, 2):
    trainer.load(trained.states[number])
    _assert_same(trainer.state(), trained.states[number])
    epoch = trainer.epoch(0.5)
    _assert_same(trainer.state(), trained.states[number + 1])
    assert epoch[:3] == trained.epochs[number][:3]


def test_evaluation_does_not_change_training(trained):
  trainer = trained.trainer
  trainer.load(trained.states[3])
  trainer.evaluate(7, _never)
  _assert_same(trainer.state(), trained.states[3])
  trainer.epoch(0.5)
  _assert_same(trainer.state(), trained.states[4])


def test_evaluation_equals_a_loop_over_environments(trained):
  trainer, config = trained.trainer, _config()
  trainer.load(trained.states[6])
  scores, lengths = trainer.evaluate(10, _never)
  env = toy.Uneven(_MAX_LENGTH)
  algorithm = build.algorithm(config, env.observation_space, env.action_space)
  trainer_lib.load_variables(algorithm, trained.states[6])
  played = []
  # The first 2 of 4 environments play 3 of the 10 episodes each.
  for index, num_episodes in enumerate((3, 3, 2, 2)):
    for episode in range(num_episodes):
      observ, _ = env.reset(seed=episode_data.episode_seed(
          random.stream(config.seed, "eval"), index, episode))
      score, length, ended = 0.0, 0, False
      while not ended:
        action, _ = algorithm.act(
            tf.constant(observ[None]), types.NOTHING, None)
        observ, reward, *ends, _ = env.step(np.clip(action[0], -1, 1))
        score, length, ended = score + reward, length + 1, any(ends)
      played.append((score, length))
  played.sort()
  assert sorted(lengths) == sorted(length for _, length in played)
  np.testing.assert_allclose(
      scores, [score for score, _ in played], rtol=1e-4)


def test_environments_wait_after_their_share_of_an_evaluation(trained):
  batch = trained.trainer._evaluator.env.batch_env
  before = batch.get("taken")
  trained.trainer.evaluate(10, _never)
  seed = random.stream(_SEED, "eval")
  assert np.subtract(batch.get("taken"), before).tolist() == [
      sum(row) for row in _lengths(0, (3, 3, 2, 2), seed)]


def test_training_raises_the_evaluation(trained):
  trainer, scores = trained.trainer, []
  for state in (trained.states[0], trained.states[-1]):
    trainer.load(state)
    scores.append(trainer.evaluate(40, _never)[0])
  lengths = trainer.evaluate(40, _never)[1]
  assert np.mean(scores[0]) < 0.55 * np.mean(lengths)
  assert np.mean(scores[1]) > 0.7 * np.mean(lengths)
