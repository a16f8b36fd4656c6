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
_MAX_LENGTH = 6  # Maximum steps of an episode.
_QUOTA = 3, 3, 2  # Episodes of each environment per epoch.


def _config():
  """Returns a config of the 2017 algorithm with 8 episodes per epoch."""
  config = config_lib.Config().override(
    {
      "env.id": "tests.toy:Uneven",
      "env.kwargs.max_length": _MAX_LENGTH,
      "env.max_length": _MAX_LENGTH + 1,
      "eval_episodes": 4,
      "seed": _SEED,
    }
  )
  return presets.apply("paper", config).override(
    {
      "num_envs": 3,
      "algorithm.update_every": 8,
      "algorithm.learning_rate": 1e-2,
      "algorithm.update_epochs": 10,
      "network.policy_layers": [8],
      "network.value_layers": [8],
    }
  )


def _lengths(epoch, quota=_QUOTA, seed=_SEED):
  """Returns the lengths of the episodes of an epoch, by environment."""
  return [
    [
      toy.Uneven.episode_length(episode_data.episode_seed(seed, index, episode), _MAX_LENGTH)
      for episode in range(epoch * number, (epoch + 1) * number)
    ]
    for index, number in enumerate(quota)
  ]


def _sort_by_end(lengths):
  """Sorts the result of `_lengths` by the end time of the episodes.

  Episodes that end at the same time are sorted by environment.
  """
  ends = [
    (sum(row[: episode + 1]), index, length)
    for index, row in enumerate(lengths)
    for episode, length in enumerate(row)
  ]
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
  states: list[dict[str, Any]]  # Before the first epoch and after every epoch.


@pytest.fixture(scope="module")
def trained():
  """Returns a trainer without workers after 60 epochs."""
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
  """Returns a trainer with the same config as `trained`, and two workers."""
  with pool.WorkerPool(2) as workers:
    trainer = build.trainer(_config(), workers)
    yield trainer
    trainer.close()


def test_every_environment_plays_its_quota(trained):
  for index, epoch in enumerate(trained.epochs):
    lengths = _lengths(index)
    assert scored.lengths(epoch) == _sort_by_end(lengths)
    assert len(scored.scores(epoch)) == len(scored.reward_parts(epoch)) == 8
    np.testing.assert_allclose(
      scored.scores(epoch),
      [parts["reward_near"] for parts in scored.reward_parts(epoch)],
      rtol=1e-5,
    )
    assert trained.states[index + 1]["episodes/episode"].tolist() == [
      (index + 1) * quota for quota in _QUOTA
    ]


def test_counters_equal_the_steps_of_the_episodes(trained):
  steps = [epoch.steps for epoch in trained.epochs]
  assert len(set(steps)) > 2
  assert all(type(num_steps) is int for num_steps in steps)
  assert steps == [sum(scored.lengths(epoch)) for epoch in trained.epochs]
  # The normalizers count environment steps; "clock" counts batched steps.
  batched_steps = [max(map(sum, _lengths(epoch))) for epoch in range(60)]
  assert len(set(batched_steps)) > 2
  for num_epochs, state in enumerate(trained.states):
    assert state["variable/observ/count:0"] == sum(steps[:num_epochs])
    assert state["variable/reward/count:0"] == sum(steps[:num_epochs])
    assert state["clock"] == sum(batched_steps[:num_epochs])


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
    assert all(type(x) is float and np.isfinite(x) for x in epoch.metrics.values())


def test_no_episode_is_running_between_epochs(trained):
  for state in trained.states:
    assert state["episodes/length"].tolist() == [0, 0, 0]
    assert state["episodes/action"].size == 0
    assert state["episodes/score"].tolist() == [0, 0, 0]


@pytest.mark.slow
def test_training_with_and_without_workers_is_bit_equal(trained, with_workers):
  with_workers.start()
  _assert_same(with_workers.state(), trained.states[0])
  for index in (0, 1):
    epoch = with_workers.epoch(0.5)
    _assert_same(with_workers.state(), trained.states[index + 1])
    assert epoch[:3] == trained.epochs[index][:3]


@pytest.mark.parametrize(
  "name", ["in_process", pytest.param("with_workers", marks=pytest.mark.slow)]
)
def test_training_from_a_loaded_state_equals_uninterrupted_training(name, trained, with_workers):
  trainer = trained.trainer if name == "in_process" else with_workers
  for index in (4, 2):
    trainer.load(trained.states[index])
    _assert_same(trainer.state(), trained.states[index])
    epoch = trainer.epoch(0.5)
    _assert_same(trainer.state(), trained.states[index + 1])
    assert epoch[:3] == trained.epochs[index][:3]


def test_evaluation_does_not_change_training(trained):
  trainer = trained.trainer
  trainer.load(trained.states[3])
  trainer.evaluate(7, _never)
  _assert_same(trainer.state(), trained.states[3])
  trainer.epoch(0.5)
  _assert_same(trainer.state(), trained.states[4])


def test_evaluation_scores_equal_those_of_a_plain_python_loop(trained):
  trainer, config = trained.trainer, _config()
  trainer.load(trained.states[6])
  statistics = trainer.evaluate(10, _never)
  scores, lengths = statistics.scores, statistics.lengths
  env = toy.Uneven(_MAX_LENGTH)
  algorithm = build.algorithm(config, env.observation_space, env.action_space)
  trainer_lib.load_variables(algorithm, trained.states[6])
  played = []
  # 10 episodes of 4 environments: two play 3 episodes, two play 2 episodes.
  for index, num_episodes in enumerate((3, 3, 2, 2)):
    for episode in range(num_episodes):
      observ, _ = env.reset(
        seed=episode_data.episode_seed(random.stream(config.seed, "eval"), index, episode)
      )
      score, length, ended = 0.0, 0, False
      while not ended:
        action, _ = algorithm.act(tf.constant(observ[None]), types.NOTHING, None)
        observ, reward, *ends, _ = env.step(np.clip(action[0], -1, 1))
        score, length, ended = score + reward, length + 1, any(ends)
      played.append((score, length))
  played.sort()
  assert sorted(lengths) == sorted(length for _, length in played)
  np.testing.assert_allclose(scores, [score for score, _ in played], rtol=1e-4)


def test_environments_wait_after_their_share_of_an_evaluation(trained):
  batch = trained.trainer.evaluator.env.batch_env
  before = batch.get("taken")
  trained.trainer.evaluate(10, _never)
  seed = random.stream(_SEED, "eval")
  assert np.subtract(batch.get("taken"), before).tolist() == [
    sum(row) for row in _lengths(0, (3, 3, 2, 2), seed)
  ]


def test_training_raises_the_score_of_evaluations(trained):
  trainer, scores = trained.trainer, []
  for state in (trained.states[0], trained.states[-1]):
    trainer.load(state)
    scores.append(trainer.evaluate(40, _never).scores)
  lengths = trainer.evaluate(40, _never).lengths
  assert np.mean(scores[0]) < 0.55 * np.mean(lengths)
  assert np.mean(scores[1]) > 0.7 * np.mean(lengths)
