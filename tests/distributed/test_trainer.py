"""Training on several machines gives the results of one machine."""

import functools

import numpy as np
import pytest

from agents import build, errors
from agents.environments.data import failure_budget
from tests.distributed import machines

pytestmark = pytest.mark.usefixtures("eagerly")
_RECURRENT = machines.CONFIG.override({"network.recurrent": "gru", "network.recurrent_units": 3})
_CONFIGS = {"segments": machines.CONFIG, "episodes": machines.EPISODES, "recurrent": _RECURRENT}


def _never():
  return False


def _assert_same(first, second):
  assert first.keys() == second.keys()
  for name, array in first.items():
    np.testing.assert_array_equal(array, second[name], err_msg=name)


def _disable_commands(trainer):
  """Disables the commands of machine 0, because no machine receives them."""
  trainer.metadata = dict
  trainer._command = lambda *args, **kwargs: None


def _train_one_epoch(trainer, stop=False):
  _disable_commands(trainer)
  trainer.start()
  trainer.stop = lambda: stop
  trainer.epoch(0.0)


def _train(trainer, load=None):
  """Returns the results of two epochs and an evaluation."""
  _disable_commands(trainer)
  if load is None:
    trainer.start()
  else:
    trainer.load(load)
  epochs = [trainer.epoch(progress) for progress in (0.0, 0.5)]
  score = trainer.evaluate(3, _never)
  return epochs, trainer.state(), score


def _assert_equal_results(results, expected):
  for epochs, state, score in results:
    _assert_same(state, expected[1])
    assert score == expected[2]
    for epoch, other in zip(epochs, expected[0], strict=True):
      assert epoch.metrics == other.metrics
      assert epoch.episodes == other.episodes
      assert epoch.steps == other.steps


@pytest.mark.slow
@pytest.mark.parametrize(
  "name, world_size",
  [("segments", 1), ("segments", 2), ("segments", 4), ("episodes", 2), ("recurrent", 2)],
)
def test_several_machines_learn_bit_equal_to_one_machine(name, world_size):
  config = _CONFIGS[name]
  alone = build.trainer(config, None)
  expected = _train(alone)
  trainers = machines.trainers(config, world_size)
  results = machines.run(
    [functools.partial(_train, trainer) for trainer in trainers], trainers[0]._communicator.group
  )
  _assert_equal_results(results, expected)
  for trainer in trainers:
    assert len(trainer.collecting_seconds) == world_size
    assert len({each._fingerprint for each in trainers}) == 1
  for trainer in (alone, *trainers):
    trainer.close()


@pytest.mark.slow
def test_several_machines_continue_from_a_state_of_one_machine():
  alone, restored = (build.trainer(machines.CONFIG, None) for _ in range(2))
  _, state, _ = _train(alone)
  assert state["episodes/length"].any()
  expected = _train(restored, state)
  trainers = machines.trainers(machines.CONFIG, 2)
  results = machines.run(
    [functools.partial(_train, trainer, state) for trainer in trainers],
    trainers[0]._communicator.group,
  )
  _assert_equal_results(results, expected)
  for trainer in (alone, restored, *trainers):
    trainer.close()


@pytest.mark.slow
def test_shared_updates_equal_updates_of_one_machine_up_to_rounding():
  alone = build.trainer(machines.CONFIG, None)
  _, expected, _ = _train(alone)
  trainers = machines.trainers(machines.CONFIG.override({"data_parallel": True}), 2)
  (_, first, _), (_, second, _) = machines.run(
    [functools.partial(_train, trainer) for trainer in trainers], trainers[0]._communicator.group
  )
  _assert_same(first, second)
  for name, array in expected.items():
    if "kernel" in name and "adam" not in name:
      np.testing.assert_allclose(first[name], array, atol=1e-3, err_msg=name)
  for trainer in (alone, *trainers):
    trainer.close()


def _assert_loss_restores(config, break_connection):
  """Checks that trainers which lose a machine keep the state before the epoch.

  Args:
    config: Configuration of the run.
    break_connection: Makes an exchange of the given trainer fail.
  """
  trainers = machines.trainers(config, 2)

  def train(trainer):
    _disable_commands(trainer)
    trainer.start()
    before = trainer.state()
    break_connection(trainer)
    with pytest.raises(errors.MachineLost, match="The cable is cut."):
      trainer.epoch(0.0)
    _assert_same(trainer.state(), before)

  machines.run([functools.partial(train, trainer) for trainer in trainers])
  for trainer in trainers:
    trainer.close()


def test_machine_lost_in_a_shared_update_restores_variables_before_the_epoch():
  def break_connection(trainer):
    all_reduce, calls = trainer._communicator.all_reduce, []

    def fail_in_second_minibatch(tensor):
      calls.append(1)
      if len(calls) == 2:
        raise errors.MachineLost("The cable is cut.")
      return all_reduce(tensor)

    trainer._communicator.all_reduce = fail_in_second_minibatch

  _assert_loss_restores(machines.CONFIG.override({"data_parallel": True}), break_connection)


@pytest.mark.slow
def test_machine_lost_after_an_update_restores_variables_before_the_epoch():
  def break_connection(trainer):
    def fail(value):
      raise errors.MachineLost("The cable is cut.")

    trainer.exchange = fail  # Trainers exchange their status after updates.

  _assert_loss_restores(machines.CONFIG, break_connection)


def test_stop_of_one_machine_reaches_the_others_after_an_epoch():
  trainers = machines.trainers(machines.CONFIG, 2)
  machines.run(
    [
      functools.partial(_train_one_epoch, trainer, stop)
      for trainer, stop in zip(trainers, (False, True), strict=True)
    ],
    trainers[0]._communicator.group,
  )
  assert all(trainer.stopped for trainer in trainers)
  for trainer in trainers:
    trainer.close()


def test_evaluation_aborts_on_all_machines_if_one_stops():
  trainers = machines.trainers(machines.CONFIG, 2)
  for trainer in trainers:
    _disable_commands(trainer)
  trainers[1].stop = lambda: True
  results = machines.run(
    [functools.partial(trainer.evaluate, 3) for trainer in trainers],
    trainers[0]._communicator.group,
  )
  assert results == [None, None]
  assert all(trainer.stopped for trainer in trainers)
  for trainer in trainers:
    trainer.close()


def test_evaluation_detects_machines_with_other_variables():
  trainers = machines.trainers(machines.CONFIG, 2)
  for trainer in trainers:
    _disable_commands(trainer)
  weight = trainers[1].algorithm.weights[0]
  weight.assign(np.nextafter(np.array(weight), np.float32(1)))
  with pytest.raises(errors.MachinesDiffer, match="Machine 1"):
    machines.run(
      [functools.partial(trainer.evaluate, 3, _never) for trainer in trainers],
      trainers[0]._communicator.group,
    )
  for trainer in trainers:
    trainer.close()


def test_failures_are_collected_by_machine_0():
  trainers = machines.trainers(machines.CONFIG, 2)
  failure = failure_budget.Failure("Environment 3 failed.")
  trainers[1].train_env.batch_env.failure_budget.record(failure)
  machines.run(
    [functools.partial(_train_one_epoch, trainer) for trainer in trainers],
    trainers[0]._communicator.group,
  )
  assert trainers[0].train_env.batch_env.failure_budget.drain() == [failure]
  assert not trainers[1].train_env.batch_env.failure_budget.drain()
  for trainer in trainers:
    trainer.close()
