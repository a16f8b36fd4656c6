"""Whole epochs: what is learned, evaluated, kept and repeated."""

import functools
import json
import os
import subprocess
import sys
from typing import Any
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents import build
from agents import config as config_lib
from agents import types
from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.workers import pool
from agents.ops import random
from agents.simulation import in_graph_batch_env
from agents.simulation import rollout
from agents.training import epoch_result
from agents.training import trainer as trainer_lib
from tests import command
from tests import modes
from tests import toy

_BEST = 5.0  # Score of `toy.Target`: five steps, rewards of at most one.


def _config(**changes):
  """Small networks, eight environments of sixteen steps an epoch."""
  return config_lib.Config().override({
      "env.id": "tests.toy:Target", "num_envs": 8, "eval_episodes": 4,
      "algorithm.segment_length": 16, "algorithm.minibatch_size": 32,
      "algorithm.update_epochs": 4, "algorithm.learning_rate": 1e-2,
      "algorithm.lr_schedule": "constant", "network.policy_layers": [8],
      "network.value_layers": [8], **changes})


def _trainer(workers=None, **changes):
  return build.trainer(_config(**changes), workers)


def _never():
  return False


def _copy(arrays):
  return {name: np.array(array) for name, array in arrays.items()}


def _assert_close(found, expected, **tolerance):
  """Compare numbers or arrays by name."""
  assert found.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, err_msg=name, **tolerance)


def _assert_same(first, second, but=()):
  assert first.keys() == second.keys()
  for name, array in first.items():
    if name not in but:
      np.testing.assert_array_equal(array, second[name], err_msg=name)


class _Trained(NamedTuple):
  """A trainer and what happened to it."""

  trainer: trainer_lib.Trainer
  untrained: tuple[list[float], list[int]]  # Evaluation before.
  epochs: list[epoch_result.Epoch]
  states: list[dict[str, Any]]  # Before the first epoch and after each.


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
  """Another trainer by the same config, as another process would build it."""
  trainer = _trainer()
  yield trainer
  trainer.close()


@pytest.mark.parametrize("name", [
    "continuous", pytest.param("discrete", marks=pytest.mark.slow)])
def test_learns(name, request):
  trained = request.getfixturevalue(name)
  scores = [np.mean(epoch.scores) for epoch in trained.epochs]
  assert scores[0] < 0.65 * _BEST
  trained.trainer.load(trained.states[-1])
  evaluated, _ = trained.trainer.evaluate(20, _never)
  assert np.mean(evaluated) > 0.8 * _BEST
  assert np.mean(scores[-3:]) > scores[0] + 0.2 * _BEST


def test_learning_is_what_raises_the_evaluation(continuous):
  continuous.trainer.load(continuous.states[-1])
  evaluated, _ = continuous.trainer.evaluate(20, _never)
  untrained, _ = continuous.untrained
  assert np.mean(evaluated) > np.mean(untrained) + 0.2 * _BEST


def test_nothing_is_traced_twice(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[3])
  for progress in (0.1, 0.2):
    trainer.epoch(progress)
    trainer.evaluate(3, _never)
  assert trainer.train_epoch.experimental_get_tracing_count() == 1
  assert trainer._player._chunk.experimental_get_tracing_count() == 1


def test_an_epoch_counts_its_steps(continuous):
  for number, state in enumerate(continuous.states):
    assert state["clock"] == 16 * number
    assert state["variable/observ/count:0"] == 16 * 8 * number
    assert state["variable/return/count:0"] == 16 * 8 * number
    assert state["variable/adam/iteration"] == 4 * 4 * number
  assert all(epoch.steps == 16 * 8 for epoch in continuous.epochs)


def test_a_state_holds_variables_clock_and_running_episodes(continuous):
  names = [name for name in continuous.states[7]
           if not name.startswith("variable/")]
  assert sorted(names) == ["clock", *(f"episodes/{name}" for name in (
      "action", "episode", "length", "observ", "score", "seed"))]


def test_metrics_are_finite_numbers(continuous):
  for epoch in continuous.epochs:
    assert all(type(x) is float and np.isfinite(x)
               for x in epoch.metrics.values())
  assert set(continuous.epochs[0].seconds) == {
      "stepping", "crossing", "inference", "exchange", "learning"}


def test_progress_reaches_the_schedule():
  with modes.functions_run_eagerly():
    trainer = _trainer(**{
        "algorithm.lr_schedule": "linear", "algorithm.update_epochs": 1,
        "algorithm.minibatch_size": 128})
    trainer.start()
    rates = [trainer.epoch(progress).metrics["learning_rate"]
             for progress in (0.0, 0.25)]
    trainer.close()
  np.testing.assert_allclose(rates, [1e-2, 0.75e-2], rtol=1e-6)


def test_same_seed_learns_the_same_bits(continuous, fresh):
  fresh.start()
  _assert_same(fresh.state(), continuous.states[0])
  for number in (1, 2):
    epoch = fresh.epoch(0.5)
    _assert_same(fresh.state(), continuous.states[number])
    assert epoch.scores == continuous.epochs[number - 1].scores
    assert epoch.metrics == continuous.epochs[number - 1].metrics


def test_loaded_state_goes_on_as_if_nothing_had_happened(continuous, fresh):
  fresh.load(continuous.states[7])
  _assert_same(fresh.state(), continuous.states[7])
  # Episodes of 5 steps and segments of 16: some are under way.
  assert continuous.states[7]["episodes/length"].any()
  assert continuous.states[7]["episodes/score"].any()
  for number in (8, 9):
    epoch = fresh.epoch(0.5)
    _assert_same(fresh.state(), continuous.states[number])
    assert epoch.scores == continuous.epochs[number - 1].scores
    assert epoch.lengths == continuous.epochs[number - 1].lengths
    assert epoch.metrics == continuous.epochs[number - 1].metrics


def test_eager_and_compiled_epochs_agree(continuous, fresh):
  with modes.functions_run_eagerly():
    fresh.load(continuous.states[2])
    epoch = fresh.epoch(0.5)
  expected = continuous.epochs[2]
  np.testing.assert_allclose(epoch.scores, expected.scores, rtol=1e-4)
  assert epoch.lengths == expected.lengths
  _assert_close(epoch.metrics, expected.metrics, rtol=2e-3, atol=1e-4)
  _assert_close(fresh.state(), continuous.states[3], rtol=2e-3, atol=1e-4)


@pytest.fixture(scope="module")
def in_parts():
  """A trainer that learns in several graph calls."""
  trainer = _trainer()
  trainer._in_parts = True
  yield trainer
  trainer.close()


@pytest.mark.slow
def test_an_update_in_parts_learns_the_same(continuous, in_parts):
  in_parts.load(continuous.states[2])
  epoch, expected = in_parts.epoch(0.5), continuous.epochs[2]
  assert epoch.episodes == expected.episodes
  assert epoch.gradient_steps == expected.gradient_steps
  assert epoch.seconds.keys() == expected.seconds.keys()
  _assert_close(epoch.metrics, expected.metrics, rtol=1e-4, atol=1e-5)
  _assert_close(in_parts.state(), continuous.states[3], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0, 2, 4, 5])
def test_an_update_that_is_given_up_leaves_no_trace(
    turns, continuous, in_parts):
  in_parts.load(continuous.states[2])
  expected = in_parts.epoch(0.5)
  after = _copy(in_parts.state())
  in_parts.load(continuous.states[2])
  asked = []
  epoch = in_parts.epoch(0.5, lambda: len(asked) == turns or asked.append(1))
  if turns == 5:  # Nobody asks a sixth time: there are four passes.
    assert epoch.metrics == expected.metrics
    _assert_same(in_parts.state(), after)
    return
  assert epoch is None
  state = _copy(in_parts.state())
  _assert_same(state, continuous.states[2])
  in_parts.load(state)
  assert in_parts.epoch(0.5).metrics == expected.metrics
  _assert_same(in_parts.state(), after)


def test_a_state_does_not_change_afterwards(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[2])
  state = trainer.state()
  before = _copy(state)
  trainer.epoch(0.5)
  trainer.evaluate(4, _never)
  _assert_same(state, before)


def test_other_seeds_learn_other_things(continuous):
  with modes.functions_run_eagerly():
    trainer = _trainer(seed=1, **{"algorithm.update_epochs": 1})
    trainer.start()
    first = trainer.state()
    trainer.close()
  for name in ("variable/policy/hidden_0/kernel",
               "variable/value/hidden_0/kernel", "episodes/seed",
               "episodes/observ"):
    assert (first[name] != continuous.states[0][name]).all(), name


def test_evaluation_changes_nothing_of_training(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[5])
  trainer.evaluate(7, _never)
  _assert_same(trainer.state(), continuous.states[5])
  trainer.epoch(0.5)
  _assert_same(trainer.state(), continuous.states[6])


def test_evaluation_repeats_with_the_same_seeds(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[5])
  first = trainer.evaluate(10, _never)
  trainer.epoch(0.5)
  other = trainer.evaluate(10, _never)
  assert other != first  # The policy has changed.
  trainer.load(continuous.states[5])
  assert trainer.evaluate(10, _never) == first


def test_evaluation_equals_playing_by_hand(continuous):
  trainer = continuous.trainer
  trainer.load(continuous.states[5])
  scores, lengths = trainer.evaluate(10, _never)
  config = _config()
  algorithm = build.algorithm(
      config, toy.Target().observation_space, toy.Target().action_space)
  trainer_lib.load_variables(algorithm, continuous.states[5])
  expected = []
  with batch_env.BatchEnv(
      [toy.Target] * 4, seed=random.stream(config.seed, "eval")) as batch:
    observ = batch.reset()
    for episode in range(3):
      score = np.zeros(4)
      for _ in range(5):
        action, _ = algorithm.act(tf.constant(observ), types.NOTHING, None)
        step = batch.step(action.numpy())
        score, observ = score + step.reward, step.observ
      # Ten episodes: the first two environments play three.
      expected.extend(score[:4 if episode < 2 else 2])
  np.testing.assert_allclose(scores, sorted(expected), rtol=1e-4)
  assert lengths == [5] * 10


def _with_envs(train, evaluate=(toy.Counter,), seed=0):
  """A trainer of these environments, with segments of four steps."""
  train_env, eval_env = (
      batch_env.BatchEnv(list(constructors), seed=seed)
      for constructors in (train, evaluate))
  config = _config(num_envs=len(train), **{
      "algorithm.segment_length": 4, "algorithm.update_epochs": 1,
      "algorithm.minibatch_size": 4 * len(train)})
  algorithm = build.algorithm(
      config, train_env.observation_space, train_env.action_space)
  return trainer_lib.Trainer(
      algorithm, in_graph_batch_env.InGraphBatchEnv(train_env),
      in_graph_batch_env.InGraphBatchEnv(eval_env),
      rollout.segments(len(train), 4))


def _counter(length):
  return functools.partial(toy.Counter, length)


@pytest.mark.parametrize("amount, expected", [
    (1, [2]), (3, [2, 3, 60]), (5, [2, 2, 3, 3, 60]),
    (7, [2, 2, 2, 3, 3, 60, 60])])
def test_every_environment_plays_its_share(amount, expected):
  # However short its episodes are: 60 steps are more than one look.
  trainer = _with_envs([toy.Counter], map(_counter, (2, 3, 60)))
  scores, lengths = trainer.evaluate(amount, _never)
  trainer.close()
  assert lengths == expected
  assert scores == [length * (length + 1) / 2 for length in expected]


def test_evaluation_can_be_given_up():
  trainer = _with_envs([toy.Counter], [_counter(200)])
  asked = []
  def stop():
    asked.append(None)
    return len(asked) == 2
  assert trainer.evaluate(1, stop) is None
  assert trainer.evaluate(1, _never)[1] == [200]
  trainer.close()


def test_episodes_are_told_in_order_and_across_epochs():
  with modes.functions_run_eagerly():
    trainer = _with_envs([_counter(2), _counter(3), _counter(6)])
    trainer.start()
    first, second = trainer.epoch(0.0), trainer.epoch(0.0)
    trainer.close()
  # Time runs 1 to 4, and 5 to 8.
  assert first.lengths == [2, 3, 2]
  assert first.scores == [3, 6, 3]
  assert second.lengths == [2, 3, 6, 2]
  assert second.scores == [3, 6, 21, 3]
  # Half of the reward.
  for epoch in (first, second):
    assert epoch.reward_parts == [
        {"reward_part": score / 2} for score in epoch.scores]


@pytest.mark.parametrize("eager", [
    True, pytest.param(False, marks=pytest.mark.slow)], ids=["eager", "graph"])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_environments_error_comes_out_as_itself(eager, num_workers):
  workers = pool.WorkerPool(num_workers) if num_workers else None
  try:
    with modes.functions_run_eagerly(eager):
      trainer = _trainer(workers, **{
          "env.id": "tests.toy:Faulty", "env.kwargs": {"fault": "raise"},
          "algorithm.update_epochs": 1, "on_env_error": "raise"})
      trainer.start()
      before = _copy(trainer.state())
      with pytest.raises(ValueError, match="^faulty step$") as caught:
        trainer.epoch(0.0)
      failure = caught.value.__cause__
      assert isinstance(failure, base.EnvironmentFailure)
      assert "Environment 0 ('Faulty'" in str(failure)
      # What the trainer holds is still the beginning of the epoch.
      _assert_same(trainer.state(), before)
      with pytest.raises(ValueError, match="^faulty step$"):
        trainer.evaluate(1, _never)
  finally:
    trainer.close()
    if workers:
      workers.close()


def test_variables_of_another_model_are_refused_by_name(continuous):
  state = continuous.states[5]
  space = toy.Target().observation_space, toy.Target().action_space
  other = build.algorithm(_config(**{"network.policy_layers": [9]}), *space)
  before = {name: np.array(variable)
            for name, variable in other.variables().items()}
  with pytest.raises(ValueError, match="of another model") as caught:
    trainer_lib.load_variables(other, state)
  assert "'policy/hidden_0/kernel'" in str(caught.value)
  assert "'policy/output/kernel'" in str(caught.value)
  assert "'value/hidden_0/kernel'" not in str(caught.value)
  _assert_same(other.variables(), before)


def test_missing_and_unknown_variables_are_refused_by_name(continuous):
  algorithm = build.algorithm(
      _config(), toy.Target().observation_space, toy.Target().action_space)
  state = dict(continuous.states[5])
  state["variable/surplus"] = state.pop("variable/policy/log_std")
  with pytest.raises(ValueError, match="'policy/log_std', 'surplus'"):
    trainer_lib.load_variables(algorithm, state)


def test_closed_environments_say_so():
  trainer = _with_envs([toy.Counter])
  trainer.start()
  trainer.close()
  trainer.close()
  with pytest.raises(RuntimeError, match="environments are closed"):
    trainer.evaluate(1, _never)


@pytest.mark.slow
def test_number_of_workers_does_not_matter(discrete):
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
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="No cores.")
def test_seconds_are_of_what_was_done_in_them_on_one_core_as_well():
  output = subprocess.run(
      [sys.executable, "-c", _SECONDS], cwd=command.ROOT, check=True, text=True,
      stdout=subprocess.PIPE).stdout
  seconds = json.loads(output.splitlines()[-1])
  whole = seconds.pop("all")
  assert seconds.pop("exchange") == 0  # There are no other machines.
  # One thread alone does things in whatever order it likes.
  assert all(part > 0 for part in seconds.values())
  assert 0.5 * whole < sum(seconds.values()) < whole
