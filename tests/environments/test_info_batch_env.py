"""InfoBatchEnv returns the infos of the latest steps and resets."""

import functools

import numpy as np
import pytest

from agents.environments import batch_env, info_batch_env
from agents.environments.data import episode_data, failure_budget
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs, rollouts


def _zero_actions(batch):
  return np.zeros((len(batch), 1), np.float32)


def _info_steps(batch):
  return [info.get("step") for info in batch.infos]


def test_infos_are_those_of_the_latest_step_and_reset(mode):
  constructors = [functools.partial(toy.Informative, length) for length in (2, 9)]
  seeds = [episode_data.episode_seed(0, 0, episode) for episode in range(2)]

  def reset_seeds(batch):
    return [info["reset_seed"] for info in batch.reset_infos]

  with info_batch_env.InfoBatchEnv(constructors, mode) as batch:
    batch.reset([5, 6])
    assert batch.infos == [{}, {}]
    assert batch.reset_infos == [{"reset_seed": 5, "text": "new"}, {"reset_seed": 6, "text": "new"}]
    batch.step(_zero_actions(batch))
    first = batch.infos
    assert _info_steps(batch) == [1, 1]
    batch.step(_zero_actions(batch))
    # Environment 0 has ended its episode and begun the next episode.
    assert _info_steps(batch) == [2, 2]
    assert batch.infos[0]["array"].tolist() == [2, 2]
    assert reset_seeds(batch) == [seeds[1], 6]
    batch.step(_zero_actions(batch), np.array([True, True]))
    assert [info["seed"] for info in batch.infos] == [seeds[1], 6]
    assert [info["step"] for info in first] == [1, 1]
    batch.reset(indices=[1], seeds=[7])
    assert _info_steps(batch) == [1, None]
    assert reset_seeds(batch) == [seeds[1], 7]
    batch.step(_zero_actions(batch), np.array([True, False]))
    assert _info_steps(batch) == [2, None]
    batch.restore(batch.snapshot())
    assert batch.infos == batch.reset_infos == [{}, {}]


def test_infos_do_not_change_the_results(mode):
  expected = rollouts.play(rollouts.BATCHES["hopper"], None)[1]
  with info_batch_env.InfoBatchEnv(rollouts.BATCHES["hopper"], mode) as batch:
    batch.reset()
    rollouts.assert_same_bits(
      expected, rollouts.roll(batch, rollouts.draw_actions(batch.action_space, 5, 60))
    )


def test_batch_env_has_no_infos():
  assert not hasattr(batch_env.BatchEnv, "infos")


@pytest.mark.parametrize("processes", [False, True])
def test_infos_of_failed_steps_are_returned(processes):
  constructors = [functools.partial(faulty_envs.Rewards, (1.0, np.nan)), toy.Informative]
  budget = failure_budget.FailureBudget(9)
  workers = pool_lib.WorkerPool(2, failure_budget=budget) if processes else None
  with info_batch_env.InfoBatchEnv(constructors, workers, failure_budget=budget) as batch:
    batch.reset()
    batch.step(_zero_actions(batch))
    step = batch.step(_zero_actions(batch))
  if workers:
    workers.close()
  assert step.valid.tolist() == [False, True]
  assert _info_steps(batch) == [2, 2]


def test_infos_that_cannot_be_pickled_arrive_as_text(pool):
  class WithGenerator(toy.Informative):
    def step(self, action):
      *rest, info = super().step(action)
      return *rest, {**info, "made": (number for number in ())}

  with info_batch_env.InfoBatchEnv([WithGenerator] * 2, pool) as batch:
    batch.reset()
    for step in (1, 2, 3):
      batch.step(_zero_actions(batch))
      assert _info_steps(batch) == [step] * 2
      assert all("generator" in info["made"] for info in batch.infos)


def test_infos_are_copies_if_the_environment_reuses_its_dict(mode):
  with info_batch_env.InfoBatchEnv([faulty_envs.SameInfo] * 2, mode) as batch:
    batch.reset()
    for step in (1, 2, 3, 1):
      batch.step(_zero_actions(batch))
      assert _info_steps(batch) == [step] * 2
      assert [info["step"] for info in batch.reset_infos] == [0, 0]
    assert [episode.info["7"] for episode in batch.take_finished()] == [1.0] * 2
