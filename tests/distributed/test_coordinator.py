"""Machine 0 sends commands; all machines execute them and keep equal states."""

import numpy as np
import pytest

from agents import build, errors
from agents.training import loop as loop_lib
from agents.training.run_folder import checkpoint, run_folder
from tests.distributed import machines
from tests.support import command

pytestmark = pytest.mark.usefixtures("eagerly")


def _loop(trainer, folder, stop=lambda: False):
  """Returns the loop of machine 0, as the train command builds it."""
  loop = loop_lib.Loop(trainer, folder, lambda: stop() or trainer.stopped)
  trainer.metadata, trainer.stop = loop.metadata, stop
  return loop


def _folder(path):
  return run_folder.create(str(path), "test", machines.CONFIG)


class _Run:
  """A run of two machines in two threads."""

  def __init__(self, folder, resume=False, stop=(lambda: False,) * 2):
    self.trainers = machines.trainers(machines.CONFIG, 2)
    self.loop = _loop(self.trainers[0], folder, stop[0])
    self.participant = self.trainers[1]
    self.participant.stop = stop[1]

    def coordinate():
      (self.loop.resume if resume else self.loop.start)()
      self.loop.run()

    _, self.finished = machines.run(
      [coordinate, self.participant.follow], self.trainers[0]._communicator.group
    )
    for trainer in self.trainers:
      trainer.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
  """Run folder of a run with `machines.CONFIG` on one machine."""
  from tests.support import modes

  with modes.functions_run_eagerly():
    folder = _folder(tmp_path_factory.mktemp("alone"))
    trainer = build.trainer(machines.CONFIG, None)
    loop = loop_lib.Loop(trainer, folder, lambda: False)
    loop.start()
    loop.run()
    trainer.close()
  return folder


@pytest.mark.slow
def test_run_of_two_machines_equals_run_of_one_machine(alone, tmp_path):
  folder = _folder(tmp_path)
  run = _Run(folder)
  assert run.finished and run.loop.complete
  assert command.rows(folder.path) == command.rows(alone.path)
  command.assert_same_checkpoints(folder.path, alone.path)


@pytest.mark.slow
def test_participant_has_the_checkpoint_before_the_latest_epoch(alone, tmp_path):
  run = _Run(_folder(tmp_path))
  arrays, metadata = run.participant.checkpoint()
  last_step = 96 - 32
  assert metadata["step"] == run.participant.step == last_step
  path = alone.checkpoints / f"checkpoint-{last_step:012d}.npz"
  expected, expected_metadata = checkpoint.load(path)
  assert arrays.keys() == expected.keys()
  for name, array in arrays.items():
    np.testing.assert_array_equal(array, expected[name], err_msg=name)
  assert metadata["scores"] == expected_metadata["scores"]


def test_participant_without_an_epoch_has_no_checkpoint():
  trainers = machines.trainers(machines.CONFIG, 2)
  assert trainers[1].checkpoint is None and trainers[1].step == 0
  for trainer in trainers:
    trainer.close()


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [0, 1])
def test_run_that_one_machine_stopped_resumes_bit_equal_to_one_machine(stopped, alone, tmp_path):
  folder = _folder(tmp_path)
  calls = []

  def stop_later():
    calls.append(1)
    return len(calls) > 6

  stop = [lambda: False, lambda: False]
  stop[stopped] = stop_later
  run = _Run(folder, stop=stop)
  assert not run.finished and 0 < run.loop.step < 96
  run = _Run(folder, resume=True)
  assert run.finished
  assert command.rows(folder.path) == command.rows(alone.path)
  command.assert_same_checkpoints(folder.path, alone.path)


def test_random_numbers_change_on_all_machines():
  trainers = machines.trainers(machines.CONFIG, 2)

  def coordinate():
    trainers[0].start()
    trainers[0].change_random_numbers(2)
    trainers[0].end(False)

  _, finished = machines.run([coordinate, trainers[1].follow], trainers[0]._communicator.group)
  assert finished is False
  counters = {int(trainer.state()["clock"]) for trainer in trainers}
  assert len(counters) == 1 and counters != {0}
  for trainer in trainers:
    trainer.close()


def test_unknown_command_is_an_error():
  trainers = machines.trainers(machines.CONFIG, 2)
  with pytest.raises(errors.MachinesDiffer, match="unknown command 'close'"):
    machines.run(
      [lambda: trainers[0]._command("close"), trainers[1].follow], trainers[0]._communicator.group
    )
  for trainer in trainers:
    trainer.close()


def test_slow_machine_is_named_once_after_ten_slow_epochs(capsys):
  trainers = machines.trainers(machines.CONFIG, 2)
  first = trainers[0]
  first.collecting_seconds = [1.0, 2.0]
  for _ in range(9):
    first._warn_of_slow_machine()
  first.collecting_seconds = [1.0, 1.1]  # Restarts the count.
  first._warn_of_slow_machine()
  first.collecting_seconds = [1.0, 2.0]
  for _ in range(10):
    assert not capsys.readouterr().err
    first._warn_of_slow_machine()
  for _ in range(20):
    first._warn_of_slow_machine()
  printed = capsys.readouterr().err
  assert printed.count("wait for machine 1, which takes 2.0 times") == 1
  for trainer in trainers:
    trainer.close()
