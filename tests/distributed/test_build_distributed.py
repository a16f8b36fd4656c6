"""Each machine builds its share of the environments."""

import pytest

from agents.algorithms import ppo
from agents.distributed import coordinator, shared_updates
from tests.distributed import machines


@pytest.fixture
def trainers():
  made = []

  def make(world_size, **changes):
    made.extend(machines.trainers(machines.CONFIG.override(changes), world_size))
    return made

  yield make
  for trainer in made:
    trainer.close()


def test_machine_0_is_the_coordinator(trainers):
  assert [type(trainer) for trainer in trainers(3, num_envs=6)] == [
    coordinator.Coordinator,
    *[coordinator.Participant] * 2,
  ]


def test_environments_of_all_machines_have_the_seeds_of_one_machine(trainers):
  (alone,) = trainers(1)
  alone.train_env.batch_env.reset()
  expected = alone.train_env.batch_env.snapshot().seed.tolist()
  seeds = []
  for trainer in trainers(2)[1:]:
    trainer.train_env.batch_env.reset()
    seeds += trainer.train_env.batch_env.snapshot().seed.tolist()
  assert seeds == expected and len(seeds) == 4


def test_machine_without_evaluation_environments_can_be_closed(trainers):
  made = trainers(4)  # The 4 machines share 3 evaluation environments.
  evaluators = [trainer.evaluator for trainer in made]
  num_eval_envs = [len(evaluator.env) if evaluator else 0 for evaluator in evaluators]
  assert sum(num_eval_envs) == 3 and 0 in num_eval_envs


@pytest.mark.parametrize(
  "data_parallel, algorithm_type", [(False, ppo.BatchPPO), (True, shared_updates.SharedUpdatesPPO)]
)
def test_data_parallel_selects_the_algorithm(data_parallel, algorithm_type, trainers):
  for trainer in trainers(2, data_parallel=data_parallel):
    assert type(trainer.algorithm) is algorithm_type
