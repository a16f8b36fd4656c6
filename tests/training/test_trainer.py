"""Trainer with segments: learning, evaluation, state and reproducibility."""

import functools
import json
import os
import subprocess
import sys
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents import build, types
from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.workers import pool
from agents.ops import random
from agents.simulation import evaluator, in_graph_batch_env, rollout_to_batch
from agents.training import epoch_result
from agents.training import trainer as trainer_lib
from tests import toy
from tests.support import command, modes
from tests.training import graph_calls, scored

# Best score of `toy.Target`: five steps with rewards of at most one.
_BEST = 5.0


def _config(**changes):
  """Returns a config with small networks and 8 x 16 steps per epoch."""
  return config_lib.Config().override(
    {
      "env.id": "tests.toy:Target",
      "num_envs": 8,
      "eval_episodes": 4,
      "algorithm.segment_length": 16,
      "algorithm.minibatch_size": 32,
      "algorithm.update_epochs": 4,
      "algorithm.learning_rate": 1e-2,
      "algorithm.lr_schedule": "constant",
      "network.policy_layers": [8],
      "network.value_layers": [8],
      **changes,
    }
  )


def _trainer(workers=None, **changes):
  return build.trainer(_config(**changes), workers)


def _never():
  return False


def _copy(arrays):
  return {name: np.array(array) for name, array in arrays.items()}


def _assert_close(actual, expected, **tolerance):
  """Compares numbers or arrays by name."""
  assert actual.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_allclose(actual[name], value, err_msg=name, **tolerance)


def _assert_same(first, second):
  assert first.keys() == second.keys()
  for name, array in first.items():
    np.testing.assert_array_equal(array, second[name], err_msg=name)


class _Trained(NamedTuple):
  """A trainer with the results of its epochs."""

  trainer: trainer_lib.Trainer
  untrained: tuple[list[float], list[int]]  # Evaluation before training.
  epochs: list[epoch_result.Epoch]
  states: list[dict[str, Any]]  # Before the first epoch, then after each epoch.


def _train(discrete):
  trainer = _trainer(**{"env.kwargs": {"discrete": discrete}})
  trainer.start()
  untrained = trainer.evaluate(20, _never)
  epochs, states = [], [_copy(trainer.state())]
  for _ in range(15):
    epochs.append(trainer.epoch(0.5))
    states.append(_copy(trainer.state()))
  return _Trained(trainer, untrained, epochs, states)


@pytest.fixture(scope="module")
def continuous():
  trained = _train(discrete=False)
  yield trained
  trained.trainer.close()


@pytest.fixture(scope="module")
def discrete():
  trained = _train(discrete=True)
  yield trained
  trained.trainer.close()


@pytest.fixture(scope="module")
def fresh():
  """Another trainer, with the same config as `continuous`."""
  trainer = _trainer()
  yield trainer
  trainer.close()


@pytest.mark.parametrize("name", ["continuous", pytest.param("discrete", marks=pytest.mark.slow)])
def test_training_increases_training_and_evaluation_scores(name, request):
  trained = request.getfixturevalue(name)
  scores = [np.mean(scored.scores(epoch)) for epoch in trained.epochs]
  assert scores[0] < 0.65 * _BEST
  trained.trainer.load(trained.states[-1])
  evaluated = trained.trainer.evaluate(20, _never).scores
  assert np.mean(evaluated) > 0.8 * _BEST
  assert np.mean(scores[-3:]) > scores[0] + 0.2 * _BEST


def test_trained_policy_is_better_than_the_untrained_one(continuous):
  continuous.trainer.load(continuous.states[-1])
  evaluated = continuous.trainer.evaluate(20, _never).scores
  untrained = continuous.untrained.scores
  assert np.mean(evaluated) > np.mean(untrained) + 0.2 * _BEST


def test_epochs_and_evaluations_are_traced_once(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[3])
  functions = []
  for progress in (0.1, 0.2):
    trainer.epoch(progress)
    trainer.evaluate(3, _never)
    functions.append(trainer.evaluator._function)
  assert trainer.train_epoch.experimental_get_tracing_count() == 1
  assert functions[0] is functions[1]


def test_an_epoch_calls_one_graph(continuous, monkeypatch):
  continuous.trainer.load(continuous.states[3])
  graphs = graph_calls.record(monkeypatch)
  continuous.trainer.epoch(0.5)
  assert graphs == ["train_epoch"]


def test_counters_in_the_state_count_steps(continuous):
  for number, state in enumerate(continuous.states):
    assert state["clock"] == 16 * number
    assert state["variable/observ/count:0"] == 16 * 8 * number
    assert state["variable/return/count:0"] == 16 * 8 * number
    assert state["variable/adam/iteration"] == 4 * 4 * number
  assert all(epoch.steps == 16 * 8 for epoch in continuous.epochs)


def test_state_contains_variables_step_counter_and_running_episodes(continuous):
  names = [name for name in continuous.states[7] if not name.startswith("variable/")]
  assert sorted(names) == [
    "clock",
    *(f"episodes/{name}" for name in ("action", "episode", "length", "observ", "score", "seed")),
  ]


def test_metrics_are_finite_floats(continuous):
  for epoch in continuous.epochs:
    assert all(type(x) is float and np.isfinite(x) for x in epoch.metrics.values())
  assert set(continuous.epochs[0].seconds) == {
    "stepping",
    "crossing",
    "inference",
    "exchange",
    "learning",
  }


@pytest.mark.slow
def test_progress_sets_the_learning_rate():
  with modes.functions_run_eagerly():
    trainer = _trainer(
      **{
        "algorithm.lr_schedule": "linear",
        "algorithm.update_epochs": 1,
        "algorithm.minibatch_size": 128,
      }
    )
    trainer.start()
    rates = [trainer.epoch(progress).metrics["learning_rate"] for progress in (0.0, 0.25)]
    trainer.close()
  np.testing.assert_allclose(rates, [1e-2, 0.75e-2], rtol=1e-6)


@pytest.mark.slow
def test_trainers_with_equal_seeds_are_bit_equal(continuous, fresh):
  fresh.start()
  _assert_same(fresh.state(), continuous.states[0])
  for number in (1, 2):
    epoch = fresh.epoch(0.5)
    _assert_same(fresh.state(), continuous.states[number])
    assert scored.scores(epoch) == scored.scores(continuous.epochs[number - 1])
    assert epoch.metrics == continuous.epochs[number - 1].metrics


@pytest.mark.slow
def test_loaded_state_continues_bit_equal_to_the_saved_run(continuous, fresh):
  fresh.load(continuous.states[7])
  _assert_same(fresh.state(), continuous.states[7])
  # Episodes have 5 steps and segments have 16 steps, so episodes are running.
  assert continuous.states[7]["episodes/length"].any()
  assert continuous.states[7]["episodes/score"].any()
  for number in (8, 9):
    epoch = fresh.epoch(0.5)
    _assert_same(fresh.state(), continuous.states[number])
    expected = continuous.epochs[number - 1]
    assert scored.scores(epoch) == scored.scores(expected)
    assert scored.lengths(epoch) == scored.lengths(expected)
    assert epoch.metrics == expected.metrics


@pytest.mark.slow
def test_eager_and_compiled_epochs_agree(continuous, fresh):
  with modes.functions_run_eagerly():
    fresh.load(continuous.states[2])
    epoch = fresh.epoch(0.5)
  expected = continuous.epochs[2]
  np.testing.assert_allclose(scored.scores(epoch), scored.scores(expected), rtol=1e-4)
  assert scored.lengths(epoch) == scored.lengths(expected)
  _assert_close(epoch.metrics, expected.metrics, rtol=2e-3, atol=1e-4)
  _assert_close(fresh.state(), continuous.states[3], rtol=2e-3, atol=1e-4)


def test_copied_state_does_not_change_while_an_epoch_runs(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[2])
  copied = trainer.capture()
  ended, reads = threading.Event(), []

  def read():
    while True:
      was_last = ended.is_set()
      reads.append(_copy(copied()))
      if was_last:
        return

  thread = threading.Thread(target=read)
  thread.start()
  trainer.epoch(0.5)
  trainer.epoch(0.5)
  ended.set()
  thread.join()
  _assert_same(trainer.state(), continuous.states[4])
  for state in reads:
    _assert_same(state, continuous.states[2])


def test_returned_state_does_not_change_afterwards(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[2])
  state = trainer.state()
  before = _copy(state)
  trainer.epoch(0.5)
  trainer.evaluate(4, _never)
  _assert_same(state, before)


def test_other_seeds_initialize_other_weights_and_episodes(continuous):
  with modes.functions_run_eagerly():
    trainer = _trainer(seed=1, **{"algorithm.update_epochs": 1})
    trainer.start()
    first = trainer.state()
    trainer.close()
  for name in (
    "variable/policy/hidden_0/kernel",
    "variable/value/hidden_0/kernel",
    "episodes/seed",
    "episodes/observ",
  ):
    assert (first[name] != continuous.states[0][name]).all(), name


def test_evaluation_does_not_change_training(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[5])
  trainer.evaluate(7, _never)
  _assert_same(trainer.state(), continuous.states[5])
  trainer.epoch(0.5)
  _assert_same(trainer.state(), continuous.states[6])


def test_evaluations_play_the_same_episodes(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[5])
  first = trainer.evaluate(10, _never)
  trainer.epoch(0.5)
  other = trainer.evaluate(10, _never)
  assert other != first  # The policy has changed.
  trainer.load(continuous.states[5])
  assert trainer.evaluate(10, _never) == first


def test_evaluation_equals_a_loop_over_steps(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[5])
  statistics = trainer.evaluate(10, _never)
  scores, lengths = statistics.scores, statistics.lengths
  config = _config()
  algorithm = build.algorithm(config, toy.Target().observation_space, toy.Target().action_space)
  trainer_lib.load_variables(algorithm, continuous.states[5])
  expected = []
  with batch_env.BatchEnv([toy.Target] * 4, seed=random.stream(config.seed, "eval")) as batch:
    observ = batch.reset()
    for episode in range(3):
      score = np.zeros(4)
      for _ in range(5):
        action, _ = algorithm.act(tf.constant(observ), types.NOTHING, None)
        step = batch.step(action.numpy())
        score, observ = score + step.reward, step.observ
      # Environments 0 and 1 play 3 of the 10 episodes each, all others play 2.
      expected.extend(score[: 4 if episode < 2 else 2])
  np.testing.assert_allclose(scores, sorted(expected), rtol=1e-4)
  assert lengths == [5] * 10


def _with_envs(train, evaluate=(toy.Counter,), seed=0):
  """Returns a trainer of the given environments, with segments of 4 steps."""
  train_env, eval_env = (
    batch_env.BatchEnv(list(constructors), seed=seed) for constructors in (train, evaluate)
  )
  config = _config(
    num_envs=len(train),
    **{
      "algorithm.segment_length": 4,
      "algorithm.update_epochs": 1,
      "algorithm.minibatch_size": 4 * len(train),
    },
  )
  algorithm = build.algorithm(config, train_env.observation_space, train_env.action_space)
  return trainer_lib.Trainer(
    algorithm,
    in_graph_batch_env.InGraphBatchEnv(train_env),
    evaluator.Evaluator(in_graph_batch_env.InGraphBatchEnv(eval_env), algorithm, explore=False),
    rollout_to_batch.segments(len(train), 4),
  )


def _counter(length):
  return functools.partial(toy.Counter, length)


@pytest.mark.parametrize(
  "num_episodes, expected",
  [(1, [2]), (3, [2, 3, 60]), (5, [2, 2, 3, 3, 60]), (7, [2, 2, 2, 3, 3, 60, 60])],
)
def test_each_environment_plays_its_share_of_an_evaluation(num_episodes, expected):
  # An episode of 60 steps needs more than one graph call.
  trainer = _with_envs([toy.Counter], map(_counter, (2, 3, 60)))
  statistics = trainer.evaluate(num_episodes, _never)
  scores, lengths = statistics.scores, statistics.lengths
  trainer.close()
  assert lengths == expected
  assert scores == [length * (length + 1) / 2 for length in expected]


def test_evaluation_can_be_aborted_and_repeated():
  trainer = _with_envs([toy.Counter], [_counter(200)])
  answers = iter([False, True])
  assert trainer.evaluate(1, lambda: next(answers)) is None
  assert trainer.evaluate(1, _never).lengths == [200]
  trainer.close()


def test_episodes_are_in_order_of_time_and_span_epochs():
  with modes.functions_run_eagerly():
    trainer = _with_envs([_counter(2), _counter(3), _counter(6)])
    trainer.start()
    first, second = trainer.epoch(0.0), trainer.epoch(0.0)
    trainer.close()
  # The first epoch has steps 1 to 4, the second one 5 to 8.
  assert scored.lengths(first) == [2, 3, 2]
  assert scored.scores(first) == [3, 6, 3]
  assert scored.lengths(second) == [2, 3, 6, 2]
  assert scored.scores(second) == [3, 6, 21, 3]
  # The only reward part is half of the reward.
  for epoch in (first, second):
    assert scored.reward_parts(epoch) == [
      {"reward_part": score / 2} for score in scored.scores(epoch)
    ]


@pytest.mark.parametrize(
  "eager", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["eager", "graph"]
)
@pytest.mark.parametrize("num_workers", [0, 2])
def test_environment_error_is_raised_and_keeps_the_state_before_the_epoch(eager, num_workers):
  workers = pool.WorkerPool(num_workers) if num_workers else None
  try:
    with modes.functions_run_eagerly(eager):
      trainer = _trainer(
        workers,
        **{
          "env.id": "tests.toy:Faulty",
          "env.kwargs": {"fault": "raise"},
          "algorithm.update_epochs": 1,
          "on_env_error": "raise",
        },
      )
      trainer.start()
      before = _copy(trainer.state())
      with pytest.raises(ValueError, match="^faulty step$") as caught:
        trainer.epoch(0.0)
      failure = caught.value.__cause__
      assert isinstance(failure, base.EnvironmentFailure)
      assert "Environment 0 ('Faulty'" in str(failure)
      _assert_same(trainer.state(), before)
      with pytest.raises(ValueError, match="^faulty step$"):
        trainer.evaluate(1, _never)
  finally:
    trainer.close()
    if workers:
      workers.close()


@pytest.mark.slow
def test_policy_state_is_reset_where_the_replay_of_an_episode_differs(eagerly):
  trainer = _trainer(
    **{
      "network.recurrent": "gru",
      "num_envs": 3,
      "env.kwargs": {"length": 50},
      "eval_episodes": 1,
      "algorithm.minibatch_size": 48,
    }
  )
  trainer.start()
  trainer.epoch(0.0)
  saved = _copy(trainer.state())
  saved["episodes/observ"][1] = np.nextafter(saved["episodes/observ"][1], np.float32(2))
  trainer.load(saved)
  loaded = trainer.state()
  assert loaded["episodes/episode"].tolist() == [0, 1, 0]
  assert loaded["episodes/length"].tolist() == [16, 0, 16]
  for row in (0, 2):
    assert saved["state/0"][row].any()
    assert loaded["state/0"][row].tobytes() == saved["state/0"][row].tobytes()
  assert not loaded["state/0"][1].any()
  trainer.epoch(0.0)
  trainer.close()


def test_loading_variables_of_another_model_names_the_variables(continuous):
  state = continuous.states[5]
  space = toy.Target().observation_space, toy.Target().action_space
  other = build.algorithm(_config(**{"network.policy_layers": [9]}), *space)
  before = {name: np.array(variable) for name, variable in other.variables().items()}
  with pytest.raises(ValueError, match="of another model") as caught:
    trainer_lib.load_variables(other, state)
  assert "'policy/hidden_0/kernel'" in str(caught.value)
  assert "'policy/output/kernel'" in str(caught.value)
  assert "'value/hidden_0/kernel'" not in str(caught.value)
  _assert_same(other.variables(), before)


def test_loading_names_missing_and_unknown_variables(continuous):
  algorithm = build.algorithm(_config(), toy.Target().observation_space, toy.Target().action_space)
  state = dict(continuous.states[5])
  state["variable/surplus"] = state.pop("variable/policy/log_std")
  with pytest.raises(ValueError, match="'policy/log_std', 'surplus'"):
    trainer_lib.load_variables(algorithm, state)


def test_closed_trainer_raises_a_clear_error():
  trainer = _with_envs([toy.Counter])
  trainer.start()
  trainer.close()
  trainer.close()
  with pytest.raises(RuntimeError, match="environments are closed"):
    trainer.evaluate(1, _never)


@pytest.mark.slow
def test_results_are_bit_equal_for_any_number_of_workers(discrete):
  for num_workers in (1, 2):
    with pool.WorkerPool(num_workers) as workers:
      trainer = _trainer(workers, **{"env.kwargs": {"discrete": True}})
      trainer.start()
      for number in (1, 2, 3):
        trainer.epoch(0.5)
        _assert_same(trainer.state(), discrete.states[number])
      assert trainer.evaluate(20, _never) is not None
      trainer.close()


_SECONDS = """\
import json, os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from agents import build, config
config = config.Config().override({"env.id": "CartPole-v1", "num_envs": 16})
build.setup(config)
trainer = build.trainer(config, None)
trainer.start()
trainer.epoch(0.0)  # Compiles.
start = time.perf_counter()
seconds = trainer.epoch(0.0).seconds
print(json.dumps({**seconds, "all": time.perf_counter() - start}))
trainer.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(
  not hasattr(os, "sched_setaffinity"), reason="Cannot restrict a process to one core."
)
def test_seconds_of_an_epoch_add_up_on_one_core():
  output = subprocess.run(
    [sys.executable, "-c", _SECONDS],
    cwd=command.ROOT,
    check=True,
    text=True,
    stdout=subprocess.PIPE,
  ).stdout
  seconds = json.loads(output.splitlines()[-1])
  total = seconds.pop("all")
  assert seconds.pop("exchange") == 0  # Positive only with several machines.
  # On one core, TensorFlow may execute operations in another order. Control
  # dependencies keep the timestamps in order, so every part is positive.
  assert all(part > 0 for part in seconds.values())
  assert 0.5 * total < sum(seconds.values()) < total
