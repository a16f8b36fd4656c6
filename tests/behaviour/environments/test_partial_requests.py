"""Access to selected environments, partial resets, and rollouts of a batch."""

import functools
import os
import signal

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env, info_batch_env
from agents.environments.data import episode_data, failure_budget
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs, rollouts


def _zeros(batch):
  return np.zeros((len(batch), 1), np.float32)


# Access to environments.


def test_constructors_may_differ_by_index(mode):
  constructors = [functools.partial(gymnasium.make, "Pendulum-v1", g=g) for g in (9.8, 1.6, 3.7)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    assert batch.get("g") == [9.8, 1.6, 3.7]


def test_get_set_and_call_select_environments_by_index(mode):
  with batch_env.BatchEnv(rollouts.BATCHES["toy"][:4], mode) as batch:
    assert batch.get("length", [2, 0]) == [3, 1]
    assert batch.get("length", np.array([1])) == [2]
    assert batch.get("length", []) == []
    batch.set("length", [7, 8], indices=[3, 1])
    assert batch.get("length") == [1, 8, 3, 7]
    assert batch.call("add", 1, second=2, indices=[1, 3]) == [3, 3]
    batch.set("length", [1, 2, 3, 4])
    assert batch.get("length") == [1, 2, 3, 4]


def test_call_affects_selected_environments_only(mode):
  with batch_env.BatchEnv([faulty_envs.ProcessInfo] * 3, mode) as batch:
    batch.reset()
    batch.call("step", np.zeros(1), indices=[1])
    assert batch.step(_zeros(batch)).observ[:, 1].tolist() == [1, 2, 1]


def test_call_passes_keyword_arguments_of_any_name(mode):
  class ReturnsArguments(toy.Counter):
    def arguments(self, name, self_=0):
      return name, self_

  with batch_env.BatchEnv([ReturnsArguments] * 2, mode) as batch:
    assert batch.call("arguments", name=3, self_=4) == [(3, 4)] * 2


@pytest.mark.parametrize("indices", [[2], [-1], [0, 0]])
def test_wrong_indices_are_refused(indices):
  with batch_env.BatchEnv([toy.Counter] * 2) as batch:
    batch.reset()
    for request in (
      lambda: batch.get("length", indices),
      lambda: batch.call("add", 1, indices=indices),
      lambda: batch.set("length", [1] * len(indices), indices),
      lambda: batch.reset(indices=indices),
    ):
      with pytest.raises(ValueError, match="distinct numbers from 0 to 1"):
        request()
    assert batch.step(_zeros(batch)).observ[:, 1].tolist() == [1, 1]


def test_wrong_number_of_values_is_refused():
  with batch_env.BatchEnv([toy.Counter] * 2) as batch:
    with pytest.raises(ValueError, match="must contain 1"):
      batch.set("length", [1, 2], [0])


# Resets of selected environments.


def test_partial_reset_begins_selected_episodes_and_continues_others(mode):
  with batch_env.BatchEnv([functools.partial(toy.Counter, 4)] * 3, mode, seed=5) as batch:
    # The environments observe `seed % 1000`.
    observed_seed = [
      [episode_data.episode_seed(5, index, episode) % 1000 for episode in range(3)]
      for index in range(3)
    ]
    batch.reset()
    batch.step(_zeros(batch))
    observ = batch.reset(indices=[2, 0], seeds=[77, 78])
    assert observ.tolist() == [[78, 0], [observed_seed[1][0], 1], [77, 0]]
    batch.step(_zeros(batch))
    # By default, seeds are derived from the run's seed.
    assert batch.reset(indices=[0]).tolist() == [
      [observed_seed[0][2], 0],
      [observed_seed[1][0], 2],
      [77, 1],
    ]
    assert not batch.take_finished()
    for _ in range(4):
      step = batch.step(_zeros(batch))
    finished = batch.take_finished()
  assert [(episode.seed % 1000, episode.length, episode.score) for episode in finished] == [
    (observed_seed[1][0], 4, 10),
    (77, 4, 10),
    (observed_seed[0][2], 4, 10),
  ]
  assert step.terminated.tolist() == [True, False, False]
  assert step.observ[0].tolist() == [episode_data.episode_seed(5, 0, 3) % 1000, 0]


def _play(batch, kill=lambda: None):
  """Steps a batch of four environments, with some resets between the steps.

  Args:
    batch: The environments.
    kill: Function to call before the first of two successive resets.

  Returns:
    All results and infos, and the finished episodes.
  """
  results = [batch.reset()]
  actions = rollouts.draw_actions(batch.action_space, 4, 25)
  for index, action in enumerate(actions):
    if index % 9 == 4:
      kill()
    if index % 9 in (4, 5):
      results.append(batch.reset([index, 3] if index % 2 else None, [index % 3, 3]))
    results += batch.step(action)
    results += [list(batch.infos), list(batch.reset_infos)]
  return results, batch.take_finished()


@pytest.mark.slow
@pytest.mark.parametrize(
  "constructors",
  [rollouts.BATCHES["hopper"][:4], [toy.Informative] * 4],
  ids=["hopper", "informative"],
)
def test_partial_resets_with_killed_workers_have_the_same_results(constructors):
  with info_batch_env.InfoBatchEnv(constructors, seed=2) as batch:
    expected = _play(batch)
  kill_indices = iter(range(100))
  budget = failure_budget.FailureBudget(100)
  with (
    pool_lib.WorkerPool(2, failure_budget=budget) as workers,
    info_batch_env.InfoBatchEnv(constructors, workers, 2) as batch,
  ):
    np.testing.assert_equal(
      _play(batch, lambda: os.kill(workers.pids[next(kill_indices) % 2], signal.SIGKILL)), expected
    )
  assert len(budget.drain()) == 3


def test_snapshot_includes_partial_resets(mode):
  constructors = rollouts.BATCHES["hopper"][:4]
  with info_batch_env.InfoBatchEnv(constructors, mode) as batch:
    _play(batch)
    batch.reset(indices=[1], seeds=[3])
    actions = rollouts.draw_actions(batch.action_space, 4, 30)
    rollouts.roll(batch, actions[:3])
    batch.reset(indices=[2])
    running = episode_data.EpisodeState.from_arrays(batch.snapshot().arrays())
    expected = rollouts.roll(batch, actions)
  with batch_env.BatchEnv(constructors) as other:
    other.restore(running)
    rollouts.assert_same_bits(rollouts.roll(other, actions), expected)


def test_environments_can_wait_after_a_partial_reset(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    batch.step(_zeros(batch))
    batch.reset(indices=[1])
    step = batch.step(_zeros(batch), np.array([True, False]))
    assert step.observ[:, 1].tolist() == [2, 0]


def test_partial_reset_before_the_first_reset_is_refused(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    with pytest.raises(RuntimeError, match="reset.. of all environments first"):
      batch.reset(indices=[0])
    batch.reset()
    with pytest.raises(ValueError, match="must contain 1"):
      batch.reset([1, 2], [0])


def test_failed_partial_reset_prevents_a_snapshot(mode):
  constructors = [toy.Counter, functools.partial(toy.Faulty, "")]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    batch.set("_fault", ["reset"], [1])
    with pytest.raises(ValueError, match="faulty") as caught:
      batch.reset(indices=[0, 1])
    assert "Environment 1" in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match="Cannot snapshot"):
      batch.snapshot()
    with pytest.raises(RuntimeError, match="reset.. of all environments first"):
      batch.reset(indices=[0])


# Rollouts.


def test_rollout_contains_the_results_of_single_steps(mode):
  constructors = rollouts.BATCHES["toy"]
  with batch_env.BatchEnv(constructors, mode) as batch:
    policy = lambda observ: observ[:, 1:] / 4  # noqa: E731
    first, second = batch.rollout(policy, 3), batch.rollout(policy, 4)
  with batch_env.BatchEnv(constructors, mode) as batch:
    observ = batch.reset()
    for time in range(7):
      rollout, row = (first, time) if time < 3 else (second, time - 3)
      action = policy(observ)
      step = batch.step(action)
      expected = batch_env.Rollout(
        observ, action, *(getattr(step, name) for name in batch_env.Rollout._fields[2:])
      )
      for name, array in expected._asdict().items():
        np.testing.assert_array_equal(getattr(rollout, name)[row], array)
        assert getattr(rollout, name).dtype == array.dtype, name
      observ = step.observ
  assert first.observ.shape == (3, 5, 2) and second.action.shape == (4, 5, 1)


def test_rollout_without_steps_is_refused():
  with batch_env.BatchEnv([toy.Counter]) as batch:
    with pytest.raises(ValueError, match="`num_steps`"):
      batch.rollout(lambda observ: observ, 0)
