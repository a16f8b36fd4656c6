"""Machine 0 coordinates a run; all other machines follow its commands.

Only machine 0 has a run folder, writes reports and makes decisions. It sends
every decision before it acts, and the others do the same with their share of
the environments. Every machine therefore holds the whole state of the run. If
machine 0 is lost, any other machine can write the checkpoint.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from agents import errors
from agents.distributed import collectives, rollout_status
from agents.distributed import trainer as trainer_lib
from agents.training import epoch_result
from agents.training.monitoring import episode_recorder

_SLOW_RATIO = 1.5  # Duration of a collection relative to the fastest machine.
_SLOW_EPOCHS = 10  # Consecutive slow epochs before the warning.


class Command(NamedTuple):
  """The next action of all machines."""

  method: str  # Method of the trainer; "" ends the run.
  arguments: tuple = ()
  metadata: dict[str, Any] | None = None  # For a checkpoint before an epoch.
  fingerprint: bytes = b""  # Metrics of the latest epoch.
  stop: bool = False  # Whether this machine was asked to end the run.


class Coordinator(trainer_lib.DistributedTrainer):
  """The trainer of machine 0.

  Args:
    args: See `DistributedTrainer`.

  The attribute `metadata` is a function that returns the metadata of a
  checkpoint of the current state.
  """

  metadata: Callable[[], dict[str, Any]]

  def __init__(self, *args):
    super().__init__(*args)
    self._slowest = 0  # Machine in the latest epoch.
    self._num_slow_epochs = 0  # Consecutive epochs with this machine.
    self._has_warned = False

  def start(self):
    """See `Trainer.start`."""
    self._command("start")
    super().start()

  def epoch(self, progress: float) -> epoch_result.Epoch | None:
    """See `DistributedTrainer.epoch`; returns None if another machine stops."""
    self._command("epoch", progress, metadata=self.metadata())
    if self.stop_elsewhere:  # No machine begins the epoch.
      return None
    epoch = super().epoch(progress)
    self._warn_of_slow_machine()
    return epoch

  def evaluate(self, num_episodes: int, stop: Callable[[], bool]
               ) -> tuple[list[float], list[int]] | None:
    """See `Trainer.evaluate`."""
    self._command("evaluate", num_episodes)
    return super().evaluate(num_episodes, stop)

  def change_random_numbers(self, number: int):
    """See `Trainer.change_random_numbers`."""
    self._command("change_random_numbers", number)
    super().change_random_numbers(number)

  def load(self, arrays: dict[str, np.ndarray]):
    """See `Trainer.load`."""
    self._command("load", arrays)
    super().load(arrays)

  def end(self, finished: bool):
    """See `Trainer.end`."""
    with contextlib.suppress(errors.MachineLost):
      self._command("", finished)

  def _command(self, method: str, *arguments, metadata=None):
    commands = self._communicator.all_gather_object(
        Command(method, arguments, metadata, self.fingerprint))
    rollout_status.check_equal([each.fingerprint for each in commands])
    self.stop_elsewhere |= any(each.stop for each in commands)

  def _warn_of_slow_machine(self):
    """Warns once if all others wait for the same machine for many epochs."""
    seconds = self.collecting_seconds
    slowest = seconds.index(max(seconds))
    ratio = seconds[slowest] / min(seconds)
    again = ratio > _SLOW_RATIO and slowest == self._slowest
    self._slowest = slowest
    self._num_slow_epochs = self._num_slow_epochs + 1 if again else 0
    if self._num_slow_epochs == _SLOW_EPOCHS and not self._has_warned:
      self._has_warned = True
      print(f"Warning: all machines wait for machine {slowest}, which takes "
            f"{ratio:.1f} times as long as the fastest for as many "
            "environments.", file=sys.stderr, flush=True)


class Participant:
  """Follows the commands of machine 0 on another machine.

  Args:
    trainer: Trainer with this machine's share of the environments.
    communicator: The machines.
    stop: Returns whether this machine was asked to end the run.
  """

  def __init__(self, trainer: trainer_lib.DistributedTrainer,
               communicator: collectives.Communicator,
               stop: Callable[[], bool]):
    self._trainer = trainer
    self._trainer.stop = stop
    self._communicator = communicator
    self._stop = stop
    self._recorder = episode_recorder.EpisodeRecorder()
    # Metadata, state and recorded episodes from before the latest epoch.
    self._checkpoint: tuple[
        dict[str, Any], Callable[[], dict[str, np.ndarray]],
        dict[str, np.ndarray]] | None = None

  def follow(self) -> bool:
    """Executes commands until the run ends.

    Returns:
      Whether the budget is used up and the result is evaluated.

    Raises:
      MachineLost: If another machine does not answer.
    """
    while True:
      commands = self._communicator.all_gather_object(Command(
          "", fingerprint=self._trainer.fingerprint, stop=self._stop()))
      rollout_status.check_equal([each.fingerprint for each in commands])
      command: Command = commands[0]
      if not command.method:
        return command.arguments[0]
      if command.method != "epoch" or not any(
          each.stop for each in commands):
        self._execute(command)

  @property
  def step(self) -> int:
    """Environment steps before the latest epoch."""
    return self._checkpoint[0]["step"] if self._checkpoint else 0

  def checkpoint(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Returns arrays and metadata from before the latest epoch, if any."""
    if not self._checkpoint:
      return None
    metadata, state, recorded = self._checkpoint
    return {**state(), **recorded}, metadata

  def _execute(self, command: Command):
    trainer, arguments = self._trainer, command.arguments
    if command.method == "epoch":
      assert command.metadata
      self._checkpoint = (
          command.metadata, trainer.capture(), self._recorder.arrays())
      progress, = arguments
      epoch = trainer.epoch(progress)
      assert epoch
      self._recorder.add(
          epoch.episodes, command.metadata["step"] + epoch.steps)
      return
    if command.method == "evaluate":
      arguments = (*arguments, self._stop)
    if command.method == "load":
      self._recorder.load(*arguments)
    getattr(trainer, command.method)(*arguments)
